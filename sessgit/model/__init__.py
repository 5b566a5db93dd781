"""Values and pure functions on them; nothing here touches a disk."""

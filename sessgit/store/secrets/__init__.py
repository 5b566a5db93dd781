"""Values that were purged: how they are known, kept out, and looked for in all that the store holds."""

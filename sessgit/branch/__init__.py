"""Commands that change conversations: fork, restore, merge, archive, delete, edit, tag."""

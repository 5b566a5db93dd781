"""The values of a conversation: its state, its turns, what was said, and how its commits tell it."""

"""The layout of dialectic: a folder for each session, with what was noted in the place of a conversation."""

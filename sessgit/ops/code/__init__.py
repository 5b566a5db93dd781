"""The code that a conversation was about: what git says of the user's project."""

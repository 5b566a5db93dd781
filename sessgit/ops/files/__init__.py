"""The agent's files of a session: laid out again, appended to, put back."""

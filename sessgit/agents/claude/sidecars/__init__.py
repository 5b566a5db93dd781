"""The files that the client keeps next to a transcript."""

"""What `repair` does: objects brought back, chains mended in a session of their own."""

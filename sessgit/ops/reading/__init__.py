"""What several commands show of a session, computed on reading."""

"""What the index remembers of the cells of turns."""

"""What says that a turn is good or bad."""

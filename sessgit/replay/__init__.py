"""Running recorded cells again, and finding the turn in which something went bad."""

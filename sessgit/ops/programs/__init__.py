"""What programs do with sessions that they hold themselves."""

"""What a secret looks like, and replacing it before anything is written."""

"""Objects that are missing or damaged: found with git, and put back."""

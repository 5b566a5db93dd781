"""The checks of `doctor`, by what they look at."""

"""The checks of `verify`, by what they look at."""

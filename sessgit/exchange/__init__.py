"""Sessions of other systems, in and out."""

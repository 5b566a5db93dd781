"""Sessions of other systems brought in, and told in their layouts."""

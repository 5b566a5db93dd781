"""Documents: stories in, text out."""

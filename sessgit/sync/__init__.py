"""Pull and push."""

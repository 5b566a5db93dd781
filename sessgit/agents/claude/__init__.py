"""Claude Code: where its files lie, what they mean, and how to write them."""

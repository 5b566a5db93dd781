"""What `verify` looks at: refs, histories, trees, turns, states, and what lies beside them."""

"""The store: a bare git repository and what lies beside it."""

"""The store: a bare git repository and the files next to it."""

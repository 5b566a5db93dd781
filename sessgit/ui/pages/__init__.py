"""How the longer outputs are laid out."""

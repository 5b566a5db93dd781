"""How turns are tested, and which of them need be."""

"""The parts of an agent whose client has nothing of the kind."""

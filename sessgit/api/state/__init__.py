"""The parts of a session's state that only programs set."""

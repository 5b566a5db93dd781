"""The agents whose conversations are kept; each folder knows one client's files."""

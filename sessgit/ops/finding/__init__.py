"""What an address, a folder or a point of a conversation names."""

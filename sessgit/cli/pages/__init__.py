"""What commands print, and their JSON."""

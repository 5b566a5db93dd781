"""What programs say of conversations that they hold themselves, and what other systems keep."""

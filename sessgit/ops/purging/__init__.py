"""What a purge is made of: the store looked through, its history written anew, and what lies beside it."""

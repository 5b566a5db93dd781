"""The cells of turns: what each of them did, and what it depends on."""

"""Many transcripts brought in at once: which belong together, who records them, and how they come into the store."""

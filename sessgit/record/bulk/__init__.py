"""The import of many transcripts at once, in several processes."""

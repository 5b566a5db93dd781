"""Long strings cut out of the lines of transcripts."""

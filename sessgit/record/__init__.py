"""From a client's transcript to commits."""

"""What the recorder and its stub keep beside the repository: events, cursors, the last turn."""

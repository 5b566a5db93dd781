"""A broken chain of lines, mended so that every version of the client resumes it."""

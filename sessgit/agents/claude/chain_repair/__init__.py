"""A broken chain of lines, repaired so that every version of the client resumes it."""

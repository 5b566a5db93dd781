"""The layout of RLM: a folder or a set of flat files for each session."""

"""The files of a store as files: whose they are, who may read them, when they last, and folders for a while."""

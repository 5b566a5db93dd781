"""Where which words stand: the text index and the questions to it."""

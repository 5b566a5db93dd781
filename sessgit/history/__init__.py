"""From commits to answers: find, list, show, search, compare."""

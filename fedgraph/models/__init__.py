"""A row of a run trained once for use: its file, whom it may answer, and what its training was charged."""

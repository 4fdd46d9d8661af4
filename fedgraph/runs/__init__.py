"""A run from its scenario to its report: what is computed, in which order, and what the console says."""

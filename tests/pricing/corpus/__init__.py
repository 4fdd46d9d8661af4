"""Configurations of our own with what they are worth, found without fedgraph: closed forms, SciPy, dp_accounting."""

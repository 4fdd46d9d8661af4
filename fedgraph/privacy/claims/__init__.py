"""Published ε of methods that stand outside this distribution; every other formula stands beside its method."""

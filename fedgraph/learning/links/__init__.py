"""Who will be linked: pairs of nodes, what is known of a pair, and how pairs are scored."""

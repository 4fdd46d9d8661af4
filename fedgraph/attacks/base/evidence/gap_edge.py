"""Evidence of an edge in the noisy hops of ``gap_edge``."""

from fedgraph.methods import noisy_hops

evidence = noisy_hops.evidence

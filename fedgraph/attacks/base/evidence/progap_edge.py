"""Evidence of an edge in the noisy hops of ``progap_edge``."""

from fedgraph.methods import noisy_hops

evidence = noisy_hops.evidence

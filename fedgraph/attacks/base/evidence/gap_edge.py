"""What the noisy hops of ``gap_edge`` say of an edge."""

from fedgraph.methods import noisy_hops

evidence = noisy_hops.evidence

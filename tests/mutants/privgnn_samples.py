"""PrivGnn: each query has a Poisson sample of its own, which alone is what its price says."""

from tests.mutants.code import CodeMutant
from tests.mutants.samples import one_mask_for_all, require_fresh_masks

MUTANTS = [
    CodeMutant(
        "one Poisson sample for all queries of privgnn",
        lambda: one_mask_for_all("privgnn"),
        lambda: require_fresh_masks("privgnn", {}),
    )
]

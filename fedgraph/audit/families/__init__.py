"""The audited mechanisms, one file per family, each sound one followed by its broken twins.

    sums       Gaussian sums (zero-out, replace) and the aggregate of an undirected edge
    answers    Laplace and k-ary randomised response
    picks      one-shot Gumbel top-k
    bits       the multi-bit encoder, per row and in total
    degrees    sums over neighbours under the log cap
    objectives objective perturbation with Gaussian noise
    sampling   Poisson batches, fixed batches, rows that change, one-time samples
    clients    overlapping clients, secure sums
    sequences  many releases about one unit
    door       the desk: bounds enforced, values refused

A file is found by being here; it offers ``cases() -> Iterator[Case]``.
"""

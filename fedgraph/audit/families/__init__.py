"""The audited mechanisms, one file per family, each sound one followed by its broken twins.

    sums         Gaussian sums (zero-out, replace, an edge), sums over neighbours under the log cap, counts of columns,
                 records with owners
    answers      Laplace, randomised response, the multi-bit encoder, one-shot Gumbel top-k
    objectives   objective perturbation with Gaussian noise
    sampling     Poisson batches, fixed batches, rows that change, one-time samples
    compositions overlapping clients, secure sums, many releases about one unit
    door         the desk: bounds enforced, values refused, the best of a secret number of trials

A file is found by being here; it offers ``cases() -> Iterator[BenchCase]``.
"""

"""Metric-measure spaces and Gromov-Wasserstein distances between them.

``metric_space`` makes spaces from embeddings or from shortest paths; ``gromov`` solves pairs by our compiled solver
(over ``transport``) or by POT; ``gromov_bounds`` skips pairs that cannot be near; ``cluster`` and
``classify`` use distances; ``agreement`` holds our solver against POT. The room knows no torch.
"""

import os

import lazy_loader

for _library in ("JAX", "CUPY", "TENSORFLOW"):  # POT asks each of them for its arrays; JAX takes three quarters of a GPU for it
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{_library}", "1")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

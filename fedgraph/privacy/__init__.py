"""Privacy, without torch: what is protected, what was released, and what that costs.

Read in this order:

- ``units``: unit, relation, viewer and assumptions of a guarantee; ``trust``: whom people trust.
- ``sensitivity``, ``neighbour_sums``, ``private_counts``: bounds that the desk enforces on a value (``ClippedSum``,
  ``Rows``, …).
- ``mechanisms``: noise (``GaussianNoise``, ``KaryResponse``, ``ObjectivePerturbation``, …).
- ``events``: what one release did, as frozen records (``Gaussian``, ``PoissonGaussian``, ``Composed``, …), and not what it
  costs.
- ``desk``: the one door between private and public: it bounds, noises and records every release of a plan.
- ``ledger``: every release of a run. ``settle``: ledger → ε under a ``Guarantee``; a broken assumption makes it ∞.
- ``accounting``: prices of events (dominating pairs, Rényi moments) and calibration, which lands at or below its target.
- ``budget_book``: what runs on the same people may spend together. ``explain``: a ledger in words.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

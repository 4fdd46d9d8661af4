"""Published privacy statements beside what can be proven: one file per paper, one function for the report.

``rows()`` returns every ``Claim``; ``python -m fedgraph.privacy claims`` prints them (``table``).
"""

from functools import lru_cache

from fedgraph.privacy.claims import dpar, gap, gcon, local, sage
from fedgraph.privacy.claims.claim import Claim


@lru_cache(maxsize=1)
def _all() -> tuple[Claim, ...]:
    return (*dpar.rows(), *gap.rows(), *sage.rows(), *gcon.rows(), *local.rows())


def rows() -> list[Claim]:
    """Every claim, in the order of PRIVACY §4-§8, from our own accountants."""
    return list(_all())

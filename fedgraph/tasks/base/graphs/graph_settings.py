"""What a scenario writes about comparing graphs: ε, the models of a table, and how Gromov-Wasserstein problems are solved.

These are not convex: a value is the local minimum at which one descent ended, or the best of several (``quality``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from fedgraph.comparison import gromov
from fedgraph.documents import InfiniteSetting, Settings, SettingsSpec
from fedgraph.tasks.base import require_distinct_cells, task_offers
from fedgraph.tasks.base.task_offers import TaskRowKeys

_OWN, COMPARE, FUSED = "epsilons", "compare", "fused"  # of a model: budgets, own answers only, node features beside distances
GRAPH_WEIGHTS_WORDS = (
    "weights of nodes, on raw data and in clear: uniform or degree (an encoded release: uniform, its degrees are private)"
)
RESTARTS, KICKS = 8, 40  # of the careful search, beside the usual start
# Σ over pairs of n·m·(n + m)/2 points that the careful search may take by itself: about ten seconds of a core
_CAREFUL_WORK = 2e8
GraphEncoder = Literal["multi-bit", "multi-bit-total", "multi-bit-node", "gaussian-as-coded"]


DistinctGraphSettings = task_offers.distinct_values("the value")


def parse_epsilon(value: Any) -> float | str:
    """A number > 0 (∞ for no encoding) or ``1/n``; anything else is a ``ValueError`` that says why."""
    if value == "1/n":
        return str(value)
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if found > 0:
        return found
    why = "; at ε = 0 nothing may be released" if found == 0 else ""
    raise ValueError(f"allowed: ε > 0, 1/n (for a graph of n nodes), or inf (no encoding){why}")


_GraphEpsilon = Annotated[float | Literal["1/n"], BeforeValidator(parse_epsilon)]
GraphEpsilons = Annotated[list[_GraphEpsilon], DistinctGraphSettings, InfiniteSetting]
OwnGraphEpsilons = Annotated[GraphEpsilons | None, Field(min_length=1), InfiniteSetting]
GraphEncoders = Annotated[list[GraphEncoder], DistinctGraphSettings]


def is_in_clear(epsilon: float | str) -> bool:
    """Whether nothing is encoded: ε is ∞."""
    return epsilon != "1/n" and math.isinf(float(epsilon))


def _label(method: SettingsSpec) -> str:
    return str(method.get("label", method.get("model", "gcn")))


def _without_own_encoder(method: SettingsSpec) -> SettingsSpec:
    """Itself; ``ValueError`` where a model names an encoder or a rule of ε of its own: rows are named by the task's."""
    for key, instead in (("encoder", "encoders"), ("epsilon_rule", "epsilons (1/n is the rule)")):
        if key in method:
            raise ValueError(f"{key} is a setting of the whole task here; allowed: the task's {instead}")
    return method


class GraphRowKeys(TaskRowKeys):
    """The keys of a model that are the task's."""

    epsilons: OwnGraphEpsilons = Field(None, description="ε of this model; default the task's")
    compare: bool | None = Field(None, description="false: only the model's own answers")
    fused: Literal["raw", "embedding"] | None = Field(None, description="node features beside distances")


GraphModel = Annotated[SettingsSpec, AfterValidator(_without_own_encoder)]


def _checked(methods: list[SettingsSpec]) -> list[SettingsSpec]:
    require_distinct_cells("the model", [_label(m) for m in methods])
    found = []
    for m in methods:
        given = m | ({_OWN: [_written(parse_epsilon(e)) for e in m[_OWN]]} if _OWN in m else {})
        in_clear = _OWN in m and all(map(is_in_clear, given[_OWN]))
        if FUSED in m and not in_clear:
            raise ValueError("fused looks at rows in clear: it needs epsilons [inf]")
        if not m.get(COMPARE, True) and (m.get("pooling") == "none" or not in_clear):
            raise ValueError("compare: false asks for the model's own answers: it needs epsilons [inf] and pooling mean or sum")
        found.append(given)
    return found


def _written(epsilon: float | str) -> float | str:
    return "inf" if is_in_clear(epsilon) else epsilon


@dataclass(frozen=True)
class Row:
    """One model at one budget through one encoder.

    Attributes:
        index: The place of the model among the entries.
        label: The name of the model's rows.
        encoder: How a release is encoded; ``none`` in clear.
        epsilon: A number > 0, or ``1/n``.
    """

    index: int
    label: str
    encoder: str
    epsilon: float | str

    @property
    def rule(self) -> str:
        """How ε is meant: ``1/n`` for a graph of n nodes, or ``epsilon``, a number."""
        return "1/n" if isinstance(self.epsilon, str) else "epsilon"

    @property
    def variant(self) -> str:
        """The name of the row's cells."""
        return f"{self.label}/{self.encoder}/{self.rule}"


def list_rows(
    methods: Sequence[SettingsSpec], epsilons: Sequence[float | str], encoders: Sequence[str]
) -> Iterator[tuple[Row, ...]]:
    """The rows of every model, in order. epsilons: the task's, for a model that names none."""
    for index, method in enumerate(methods):
        budgets = [parse_epsilon(e) for e in method.get(_OWN, epsilons)]
        yield tuple(
            Row(index, _label(method), encoder, value)
            for value in budgets
            for encoder in (["none"] if is_in_clear(value) else encoders)
        )


_CheckedModel = Annotated[GraphModel, AfterValidator(task_offers.check_row_keys(GraphRowKeys))]
GraphModels = Annotated[list[_CheckedModel], AfterValidator(_checked)]


class GraphSolverSettings(Settings):
    """Settings that every task with Gromov-Wasserstein discrepancies has."""

    solver: Literal["fast", "pot", "proximal", "batched"] = Field(
        "fast",
        description="fast (compiled), or POT's at the server: pot (conditional gradient), proximal (proximal point), batched "
        "(proximal gradient of many pairs at once, on a GPU where there is one)",
    )
    loss: Literal["square", "kl"] = Field("square", description="of two distances: square, or kl (divergence, POT's solvers)")
    verify: int = Field(50, ge=0, description="pairs that the server also solves with POT, to compare with ours")
    quality: Literal["auto", "fast", "careful"] = Field(
        "auto",
        description="fast: one descent for each pair; careful: the best of 49; auto: careful where all pairs take about 10 s",
    )
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem, where quality is fast")

    def options(self, alpha: float | None = None, sizes: Sequence[int] = ()) -> gromov.GromovOptions:
        """As the solvers want it. alpha: weight of structure in the fused discrepancy, None for the plain one. sizes: points of
        every space that is compared with every other; without them ``auto`` is fast, as it is with restarts of one's own.

        ``ValueError`` where POT is asked for more than one descent, which it does not offer.
        """
        fits = self.solver == "fast" and not self.restarts and len(sizes) > 0 and _work(sizes) <= _CAREFUL_WORK
        careful = self.quality == "careful" or (self.quality == "auto" and fits)
        starts, kicks = (RESTARTS, KICKS) if careful else (self.restarts, 0)
        if self.solver != "fast" and starts:
            raise ValueError(f"solver: {self.solver} is one descent from p qᵀ: it needs quality: fast and restarts: 0")
        return gromov.GromovOptions(solver=self.solver, loss=self.loss, alpha=alpha, restarts=starts, kicks=kicks)


def _work(sizes: Sequence[int]) -> float:
    """Σ over pairs of n·m·(n + m)/2: what a descent costs grows about so with the numbers of points."""
    n = np.asarray(sizes, dtype=np.float64)
    return float((n.sum() * np.square(n).sum() - (n**3).sum()) / 2)

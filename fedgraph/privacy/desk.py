"""The one door between private and public.

A plan declares every release before any private data is touched (``PlannedRelease``). While the method
runs, the only way out is ``desk.release``: it checks the declaration, makes the bound true, applies the
mechanism, writes the ledger, and stamps the result (``Released``). Messages accept stamped values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedgraph.errors import BudgetExceededError, PrivacyError
from fedgraph.privacy.events import Composed, Event, Repeated
from fedgraph.privacy.ledger import Release
from fedgraph.privacy.mechanisms.noise import Mechanism
from fedgraph.privacy.sensitivity import Bound


@dataclass(frozen=True)
class PlannedRelease:
    """One kind of release, made ``per_round`` times in each of ``rounds`` by every client (or by ``client`` alone).

    path: the channel it belongs to. bound, mechanism: what the desk will enforce and do. event: what one
    release costs, under the plan's protection.
    """

    path: str
    bound: Bound
    mechanism: Mechanism
    event: Event
    rounds: range | tuple[int, ...]
    per_round: int = 1
    client: int | None = None

    @property
    def count(self) -> int:
        return len(self.rounds) * self.per_round


def declared(releases: Sequence[PlannedRelease], client: int, path: str | None = None) -> Event:
    """Everything ``client`` will have released, composed (on ``path`` only, if given)."""
    own = (r for r in releases if r.client in (None, client) and (path is None or r.path == path))
    return Composed(tuple(Repeated(r.event, r.count) for r in own))


@dataclass(frozen=True, eq=False)
class Released:
    """A value that came through the door, with the ledger line that says so. Only ``Desk`` makes these."""

    value: np.ndarray
    entry: Release


@dataclass(frozen=True, eq=False)
class Walk:
    """Many noised values in a row, each asked for at the place that the earlier ones led to (e.g. local DP-SGD).

    start: a public state. private(state) → the value to release there, the only part that touches private
    data. follow(state, noised) → the next state. result(state) → what is sent. Everything but ``private``
    sees noised values only, so what is sent is post-processing of them.
    """

    start: Any
    private: Callable[[Any], np.ndarray]
    follow: Callable[[Any, np.ndarray], Any]
    result: Callable[[Any], np.ndarray]


class Desk:
    """One client's door for one round.

    planned: the plan's releases. rng: the client's own noise stream for this round. A desk lives for one
    round, and a path may be used only in its planned rounds, so no count has to travel between workers.
    entries: the ledger lines of everything released here, whether it is sent or stays with the client.
    """

    def __init__(
        self,
        cell: str,
        client: int,
        round_: int,
        planned: Sequence[PlannedRelease],
        rng: np.random.Generator,
    ) -> None:
        self.client = client
        self._cell, self._round = cell, round_
        own = [r for r in planned if r.client in (None, client)]
        self._planned = {r.path: r for r in own}
        if len(self._planned) != len(own):
            raise PrivacyError("two planned releases share a path; give each its own")
        self._used: dict[str, int] = {}
        self._rng = rng
        self.entries: list[Release] = []

    def release(
        self,
        path: str,
        value: np.ndarray | Callable[[], np.ndarray],
        bound: Bound,
        mechanism: Mechanism,
    ) -> Released:
        """Bound, noise, record. ``value`` may be a function, called only after the budget allows the release.

        Raises ``BudgetExceededError`` for an undeclared path or one used up, ``PrivacyError`` when bound or
        mechanism differ from the declaration, ``UnboundedValueError`` when the value breaks its bound.
        """
        plan = self._allow(path, bound, mechanism)
        return self._record(plan, self._noised(value() if callable(value) else value, bound, mechanism))

    def walk(self, path: str, walk: Walk, bound: Bound, mechanism: Mechanism) -> Released:
        """One planned release whose event is ``Repeated(step, n)``: n noised values, and one ledger line for all.

        Raises as ``release`` does, and ``PrivacyError`` where the planned event is not a repeated one.
        """
        plan = self._allow(path, bound, mechanism)
        if not isinstance(plan.event, Repeated):
            raise PrivacyError(f"release {path!r} was planned as {plan.event}; a walk needs Repeated(event, steps)")
        state = walk.start
        for _ in range(plan.event.count):
            state = walk.follow(state, self._noised(walk.private(state), bound, mechanism))
        return self._record(plan, np.array(walk.result(state)))

    def _noised(self, value: np.ndarray, bound: Bound, mechanism: Mechanism) -> np.ndarray:
        noised = mechanism.apply(bound.enforce(np.asarray(value)), self._rng)
        noised.flags.writeable = False
        return noised

    def _record(self, plan: PlannedRelease, value: np.ndarray) -> Released:
        value.flags.writeable = False
        entry = Release(self._cell, plan.path, self.client, self._round, plan.mechanism.words, plan.event)
        self.entries.append(entry)
        return Released(value, entry)

    def _allow(self, path: str, bound: Bound, mechanism: Mechanism) -> PlannedRelease:
        """The declaration of ``path``, once more of its uses marked as spent; raises where there is none left."""
        plan = self._planned.get(path)
        if plan is None:
            known = ", ".join(sorted(self._planned)) or "nothing"
            raise BudgetExceededError(f"release {path!r} was not planned; planned: {known}")
        if self._round not in plan.rounds:
            raise BudgetExceededError(f"release {path!r} was planned for rounds {plan.rounds}, not for round {self._round}")
        if self._used.get(path, 0) >= plan.per_round:
            raise BudgetExceededError(
                f"release {path!r} was planned {plan.per_round} times a round, and this would be one more"
            )
        if bound != plan.bound or mechanism != plan.mechanism:
            raise PrivacyError(f"release {path!r} was planned as {plan.bound}, {plan.mechanism}; found {bound}, {mechanism}")
        self._used[path] = self._used.get(path, 0) + 1
        return plan

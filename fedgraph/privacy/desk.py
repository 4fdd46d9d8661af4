"""The one door between private and public.

A plan declares every release before it reads private data (``PlannedRelease``): its bound, its mechanism and its price. While
the method runs, a value leaves a client only through ``desk.release(path, value)``, which checks that the release was planned,
enforces the planned bound, applies the planned mechanism, writes the ledger, and returns a ``Released`` value. A method cannot
choose another bound or mechanism, and messages accept ``Released`` values only.
"""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fedgraph.errors import BudgetExceededError, PrivacyError
from fedgraph.privacy import events, ledger
from fedgraph.privacy.accounting import selection
from fedgraph.privacy.ledger import LedgerLine, LedgerRelease
from fedgraph.privacy.mechanisms.noise import NoiseMechanism
from fedgraph.privacy.sensitivity import SensitivityBound

_Tried = TypeVar("_Tried")


@dataclass(frozen=True)
class PlannedRelease:
    """A release that every client, or one client, makes in each of the given rounds."""

    path: str  # the channel that it belongs to, e.g. ``model``
    bound: SensitivityBound  # what the desk will enforce
    mechanism: NoiseMechanism  # what the desk will apply
    event: events.Event  # what one release costs, under the plan's protection
    rounds: range | tuple[int, ...]  # the rounds in which it is made
    per_round: int = 1  # releases in each of these rounds, ≥ 1
    client: int | None = None  # the client that makes it; None: every client

    @property
    def count(self) -> int:
        """Number of times that a client makes it in the whole run."""
        return len(self.rounds) * self.per_round


def declared(releases: Sequence[PlannedRelease], client: int, path: str | None = None) -> events.Event:
    """Everything that one client will have released, composed.

    Args:
        releases: the releases of a plan, of all clients.
        client: number of the client.
        path: count only this path; None: all paths.

    Returns:
        One event; for a choice (``PartOf``) it holds the releases of the first alternative that is planned.
    """
    own = [r for r in releases if r.client in (None, client) and (path is None or r.path == path)]
    first = {r.event.whole: r.event.index for r in reversed(own) if isinstance(r.event, events.PartOf)}
    made = (r for r in own if not isinstance(r.event, events.PartOf) or r.event.index == first[r.event.whole])
    return events.Composed(tuple(events.Repeated(r.event, r.count) for r in made))


def alternatives(lines: Sequence[LedgerLine], client: int) -> dict[str, str]:
    """The alternative of each choice of which a client has released something.

    Args:
        lines: lines of a ledger.
        client: number of the client.

    Returns:
        Digest of the choice → index of the alternative, as text (the form of ``Desk.released``).
    """
    own = [line.event for line in lines if any(first <= client <= last for first, last in line.clients)]
    return {_name_of(event): str(event.index) for event in reversed(own) if isinstance(event, events.PartOf)}


@dataclass(frozen=True, eq=False)
class Released:
    """A value that may leave a client, with its ledger line. Only the desk makes these."""

    value: np.ndarray  # the released value, read-only
    entry: LedgerRelease | LedgerLine  # its ledger line

    @property
    def num_clients(self) -> int:
        """Number of clients whose values are in it."""
        return ledger.count_spans(self.entry.clients) if isinstance(self.entry, LedgerLine) else 1


@dataclass(frozen=True, eq=False)
class DeskSum:
    """A sum of released values: post-processing, which is free. Only ``add_values`` makes these."""

    value: np.ndarray  # the sum
    num_clients: int  # number of clients whose values are in it


def add_values(before: Released | DeskSum, value: Released | DeskSum) -> DeskSum:
    """Adds a value to a sum, or to the first value of one: ``before + value``, in the precision of ``before``.

    Args:
        before: the sum so far, which may be overwritten.
        value: of the same shape.

    Returns:
        The sum, with the number of clients in it.
    """
    total = before.value if before.value.flags.writeable else np.array(before.value)
    total += value.value
    return DeskSum(total, before.num_clients + value.num_clients)


@dataclass(frozen=True, eq=False)
class DeskWalk:
    """Many noisy values in sequence, each computed at the state that the earlier ones led to (e.g. local DP-SGD).

    Only ``private`` reads private data; the other callbacks receive noisy values, so the result is post-processing.
    """

    start: Any  # a public state
    private: Callable[[Any], np.ndarray]  # state → the value to release there
    follow: Callable[[Any, np.ndarray], Any]  # (state, noisy value) → the next state
    result: Callable[[Any], np.ndarray]  # state → the value that is sent


@dataclass(frozen=True, eq=False)
class DeskMoment:
    """One value before and after noise, as the two-worlds test sees it (``audit.worlds``)."""

    account: str  # the account of its ledger line
    client: int  # number of the desk's client; of many clients together, the first of them
    round: int  # round of the release; of a replay, the earlier round
    release: PlannedRelease  # what was planned
    shares: int  # number of such values that the release's event prices; above 1 for the steps of a walk
    together: tuple[int, ...]  # the clients whose sum it is; empty for one client alone
    bounded: np.ndarray  # after the bound, before noise
    noised: np.ndarray  # after noise


DeskWitness: TypeAlias = Callable[[DeskMoment], np.ndarray]  # returns what leaves in place of ``noised``
_witness: ContextVar[DeskWitness | None] = ContextVar("desk witness", default=None)


@contextlib.contextmanager
def witness_desks(witness: DeskWitness) -> Iterator[None]:
    """While active, every desk of this thread passes each value to ``witness`` and releases what it returns.

    A witness sees private values in clear: it is for tests of the program, on data that may be seen.
    """
    token = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(token)


@dataclass
class Desk:
    """One client's door for one round.

    A desk lives for one round, and a path may be used only in its planned rounds, so no count has to travel between workers.

    Attributes:
        cell: the account of its ledger lines.
        client: number of the client; of many clients together, the first of them.
        round: number of the round.
        planned: the plan's releases, of all clients.
        rng: the client's own noise stream for this round.
        earlier: round → the noise stream of that earlier round, from its beginning, for ``replay``; None: nothing is replayed.
        released: what the worker keeps of this client: digests of its earlier releases, which never leave the client, and its
            choices.
        entries: the ledger lines of everything that was released here, whether it is sent or stays with the client.
        together: clients whose sum is released at once; empty for one client alone. A value is then the sum of theirs, its
            bound must be ``additive``, and the noise is one draw with the law of the sum of their shares
            (``NoiseMechanism.of_many``), which a viewer of sums cannot tell from one draw per client.

    Raises:
        PrivacyError: two planned releases of this client share a path, or ``client`` is not the first of ``together``.
    """

    cell: str
    client: int
    round: int
    planned: Sequence[PlannedRelease]
    rng: np.random.Generator
    earlier: Callable[[int], np.random.Generator] | None = None
    released: dict[str, str] = field(default_factory=dict)
    entries: list[LedgerRelease | LedgerLine] = field(default_factory=list)
    together: Sequence[int] = ()

    def __post_init__(self) -> None:
        own = [r for r in self.planned if r.client in (None, self.client)]
        self._planned = {r.path: r for r in own}
        if len(self._planned) != len(own):
            raise PrivacyError("two planned releases share a path; give each its own")
        if self.together and self.together[0] != self.client:
            raise PrivacyError(f"a desk of many clients is named by the first of them, found {self.client}")
        self._used: dict[str, int] = {}
        self._streams: dict[int, np.random.Generator] = {}
        self._places: Counter[int] = Counter()  # per round, how many values met its noise

    def release(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> Released:
        """Bounds one value, adds noise and records it, with the bound and mechanism that the plan declares for its path.

        Args:
            path: the planned release.
            value: what is released, or a function that computes it, which is called only after the plan allows the release.

        Returns:
            The noisy value with its ledger line.

        Raises:
            BudgetExceededError: the path was not planned for this round, or is used up.
            UnboundedValueError: the value breaks its bound.
            PrivacyError: a sum of several clients, where the bound is one of a client's whole value.
        """
        plan = self._allow(path, self.round)
        bounded = plan.bound.enforce(np.asarray(value() if callable(value) else value))
        if len(plan.rounds) == 1:  # only such a release can be replayed
            self.released[self._name(plan, self.round)] = _digest(bounded, self._places[self.round])
        return self._record(plan, self._noised(plan, bounded, self.round))

    def replay(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> np.ndarray:
        """The value that an earlier round released on a path, computed again: same input, same noise, same result.

        For a client that lost what it had released (its worker was restarted). Nothing new is released, so nothing is
        recorded, and the result is a bare array that no message accepts. Releases of that round must be
        replayed in the order in which they were made, from its first one on. A worker that was started again remembers no
        digest and cannot compare.

        Args:
            path: a release that was planned for exactly one round, an earlier one.
            value: what was released there, or a function that makes it.

        Returns:
            The noisy value, read-only.

        Raises:
            PrivacyError: the value, or its place in the noise stream, is not the one of the release (the same noise on two
                values would show their difference); or this desk has no earlier noise.
            BudgetExceededError: the path was not planned for exactly one earlier round, or is replayed more often than planned
                there.
            UnboundedValueError: the value breaks its bound.
        """
        plan = self._known(path)
        if len(plan.rounds) != 1 or plan.rounds[0] >= self.round:
            raise BudgetExceededError(
                f"release {path!r} was planned for rounds {plan.rounds}; round {self.round} can replay what one earlier "
                "round released, and nothing else"
            )
        if self.earlier is None or self.together:
            raise PrivacyError(f"release {path!r} cannot be replayed here: this desk was given no earlier noise")
        (made_in,) = plan.rounds
        self._allow(path, made_in)
        bounded = plan.bound.enforce(np.asarray(value() if callable(value) else value))
        if made_in not in self._streams:
            self._streams[made_in] = self.earlier(made_in)
        found = _digest(bounded, self._places[made_in])
        if self.released.get(self._name(plan, made_in), found) != found:
            raise PrivacyError(
                f"release {path!r}: what round {self.round} wants to replay is not what round {made_in} released; the same "
                "noise on another value would show the difference"
            )
        return self._noised(plan, bounded, made_in)

    def walk(self, path: str, walk: DeskWalk) -> Released:
        """One planned release of many steps: n noisy values and one ledger line.

        Args:
            path: a planned release whose event is ``Repeated(step, n)``; an ``EpochGaussian`` is a step for each batch.
            walk: where it starts, what is private, and how it goes on.

        Returns:
            The result of the walk with its ledger line.

        Raises:
            BudgetExceededError, UnboundedValueError: as ``release``.
            PrivacyError: the planned event is not a repeated one, or the desk is one of several clients.
        """
        plan = self._allow(path, self.round)
        if self.together:
            raise PrivacyError(f"release {path!r} is a walk, which every client takes alone")
        if not isinstance(plan.event, events.Repeated):
            raise PrivacyError(f"release {path!r} was planned as {plan.event}; a walk needs Repeated(event, steps)")
        state = walk.start
        one = plan.event.event
        for _ in range(plan.event.count * (one.num_batches if isinstance(one, events.EpochGaussian) else 1)):
            bounded = plan.bound.enforce(np.asarray(walk.private(state)))
            state = walk.follow(state, self._noised(plan, bounded, self.round, plan.event.count))
        return self._record(plan, np.array(walk.result(state)))

    def choose(self, path: str, trial: Callable[[int], tuple[_Tried, np.ndarray]]) -> tuple[_Tried, Released]:
        """The best of a secret number of trials by their noisy scores, with one ledger line for all trials.

        The plan fixes the law of that number, the bound of a score and its noise. Only the best trial and its noisy score may
        leave.

        Args:
            path: a planned release whose event is ``Selected``.
            trial: number of the trial → (what was tried, its score, one number); the planned event also prices what else a
                trial releases.

        Returns:
            What was tried in the best trial, and its noisy score with the ledger line.

        Raises:
            BudgetExceededError, UnboundedValueError: as ``release``.
            PrivacyError: the planned event is not ``Selected``, or the desk is one of several clients.
        """
        plan = self._allow(path, self.round)
        if not isinstance(plan.event, events.Selected) or self.together:
            raise PrivacyError(f"release {path!r} was planned as {plan.event}; a choice needs Selected, by one party alone")

        def one(number: int) -> tuple[_Tried, np.ndarray]:
            tried, score = trial(number)
            return tried, self._noised(plan, plan.bound.enforce(score), self.round)

        trials = selection.draw_trials(plan.event.shape, plan.event.stop, self.rng)  # one at least
        best, noised = max(map(one, range(trials)), key=lambda made: made[1].item())
        return best, self._record(plan, noised)

    def _noised(self, plan: PlannedRelease, bounded: np.ndarray, round_: int, shares: int = 1) -> np.ndarray:
        mechanism, exact = plan.mechanism.of_many(len(self.together)) if self.together else plan.mechanism, bounded
        noised = mechanism.apply(bounded, self.rng if round_ == self.round else self._streams[round_])
        self._places[round_] += 1
        if (witness := _witness.get()) is not None:
            noised = witness(DeskMoment(self.cell, self.client, round_, plan, shares, tuple(self.together), exact, noised))
        noised.flags.writeable = False
        return noised

    def _record(self, plan: PlannedRelease, value: np.ndarray) -> Released:
        value.flags.writeable = False
        entry: LedgerRelease | LedgerLine
        if self.together:
            now = ((self.round, self.round),)
            entry = LedgerLine(self.cell, plan.path, ledger.spans(self.together), now, 1, plan.mechanism.words, plan.event)
        else:
            entry = LedgerRelease(self.cell, plan.path, self.client, self.round, plan.mechanism.words, plan.event)
        self.entries.append(entry)
        return Released(value, entry)

    def _name(self, plan: PlannedRelease, round_: int) -> str:
        """Name of the use of ``plan`` that ``_allow`` marked last."""
        return f"{plan.path}#{round_}#{self._used[plan.path]}"

    def _known(self, path: str) -> PlannedRelease:
        plan = self._planned.get(path)
        if plan is None:
            known = ", ".join(sorted(self._planned)) or "nothing"
            raise BudgetExceededError(f"release {path!r} was not planned; planned: {known}")
        if self.together and not plan.bound.additive:
            raise PrivacyError(
                f"release {path!r} bounds a client's whole value ({type(plan.bound).__name__}), which a sum does not keep"
            )
        return plan

    def _allow(self, path: str, round_: int) -> PlannedRelease:
        """The planned release of ``path``; marks one of its uses in ``round_`` as spent, and raises if none is left."""
        plan = self._known(path)
        if round_ not in plan.rounds:
            raise BudgetExceededError(f"release {path!r} was planned for rounds {plan.rounds}, not for round {round_}")
        if self._used.get(path, 0) >= plan.per_round:
            raise BudgetExceededError(
                f"release {path!r} was planned {plan.per_round} times a round, and this would be one more"
            )
        if isinstance(plan.event, events.PartOf):
            taken = self.released.setdefault(_name_of(plan.event), str(plan.event.index))
            if taken != str(plan.event.index):
                raise BudgetExceededError(f"release {path!r} belongs to another alternative than what was released before")
        self._used[path] = self._used.get(path, 0) + 1
        return plan


def _name_of(part: events.PartOf) -> str:
    return f"choice {hashlib.sha256(repr(part.whole).encode()).hexdigest()}"


def _digest(value: np.ndarray, place: int) -> str:
    """A digest of a bounded value and of the number of values that drew from its round's noise stream before it."""
    whole = hashlib.sha256(repr((value.shape, value.dtype.str, place)).encode())
    whole.update(np.ascontiguousarray(value).tobytes())
    return whole.hexdigest()

"""What several runs cost one person together, where people of different clients pay differently."""

import itertools
import math
from collections.abc import Sequence

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, SampledOnce
from fedgraph.privacy.ledger import Account, spent
from fedgraph.privacy.lines import Line
from fedgraph.privacy.settle import Guarantee, client_events

MOST_CHOICES = 256  # combinations of dearest events over runs that are priced one by one; beyond, one bound for all


def dearest_events(guarantee: Guarantee, releases: Sequence[Line] | Sequence[PlannedRelease]) -> tuple[Event, ...]:
    """What one person may pay for ``releases``: each person pays one of these events, or something that one of them bounds.

    Clients that share nobody: the distinct events of clients. Prices per end of an edge: each pair of them. Clients that share
    people: one event with all that the holders of any one person release, by kind (an upper bound). ``PrivacyError`` where
    a promise is broken: then nothing is protected.
    """
    broken = [promise for promise in guarantee.promises if not promise.kept]
    if broken:
        raise PrivacyError(f"the guarantee assumes {broken[0].assumption.value}, and the data break it: ε is ∞")
    events = client_events(guarantee, releases)
    kinds = tuple(dict.fromkeys(events.values()))
    if guarantee.holdings is None:
        pairs = itertools.combinations_with_replacement(kinds, 2)
        found = tuple(Composed(pair) for pair in pairs) if guarantee.per_end else kinds
        return found or (Composed(()),)
    holdings = guarantee.holdings
    worst = []
    for kind in kinds:
        clients = [client for client, event in events.items() if event == kind and client < holdings.shape[0]]
        most = int((holdings[clients] != 0).sum(axis=0).max()) if clients else 0
        worst += [kind] * most
    return (Composed(tuple(worst)),)


def dearest_together(parts: Sequence[tuple[Event, ...]]) -> tuple[Event, ...]:
    """What one person may pay for several trainings on the same people, of each of which it pays one of the events."""
    if math.prod(map(len, parts)) > MOST_CHOICES:  # whoever pays all events of a training pays at least its own
        return (Composed(tuple(event for part in parts for event in part)),)
    return tuple(Composed(chosen) for chosen in dict.fromkeys(itertools.product(*parts)))


def dearest_of_account(account: Account, lines: Sequence[Line]) -> tuple[Event, ...]:
    """The same, from a ledger: it names the holders of the worst unit where several clients release something of one."""
    events = spent(lines)
    if account.holders is not None:
        events = {0: Composed(tuple(events[client] for client in account.holders if client in events))}
    if account.sampled_once is not None:
        events = {client: SampledOnce(event, account.sampled_once) for client, event in events.items()}
    return tuple(dict.fromkeys(events.values())) or (Composed(()),)


def joint_epsilon(charges: Sequence[tuple[Event, ...]], delta: float) -> float:
    """ε at ``delta`` of one person's charges, where each charge is one of several events: the dearest choice."""
    return max(price(event, delta).epsilon for event in dearest_together(charges))

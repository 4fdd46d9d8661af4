"""Who computed what, and what the federation cost: for the page's section "How it was made"."""

from collections.abc import Mapping


def count_actors(runtime: Mapping[str, object]) -> dict[str, str]:
    """One line for the actors, and one for each task whose rounds were counted.

    Args:
        runtime: what ``environment.json`` holds under this name.

    Returns: title → words; empty where nothing is known.
    """
    found: dict[str, str] = {}
    where, names, counts = runtime.get("federations"), runtime.get("actors"), runtime.get("federation")
    names = list(names) if isinstance(names, Mapping) else []
    kinds = {kind: sum(name.rpartition("/")[2].startswith(kind) for name in names) for kind in ("client", "server", "curator")}
    actors = ", ".join(f"{many} {kind}{'s' if many > 1 else ''}" for kind, many in kinds.items() if many)
    if where:
        found["Federations"] = str(where) + (f"; actors: {actors}" if actors else "")
    clients = max(1, kinds["client"])
    for task, count in counts.items() if isinstance(counts, Mapping) else ():
        found[f"Rounds of {task}"] = _in_words(count, clients)
    return found


def _in_words(count: Mapping[str, float], clients: int) -> str:
    """Rounds, calls, messages, bytes, and which share of the time nobody was at work."""
    seconds = count["seconds"]
    rate = f" ({count['calls'] / seconds:,.0f} a second)" if seconds else ""
    text = (
        f"{count['rounds']:,} rounds of {count['trainings']:,} trainings, in {count['calls']:,} calls{rate}; "
        f"{count['messages']:,} messages, {count['bytes_up'] / 1e6:,.1f} MB up, {count['bytes_down'] / 1e6:,.1f} MB down"
    )
    if not seconds:
        return text
    idle = [1 - count["clients_busy"] / (clients * seconds), 1 - count["server_busy"] / seconds]
    return text + "; idle: clients {:.0%}, server {:.0%}".format(*(min(max(share, 0.0), 1.0) for share in idle))

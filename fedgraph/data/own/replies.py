"""What web services answer, as plain records: JSON:API, HAL, GraphQL, and pages that wrap a list."""

from __future__ import annotations

from collections.abc import Mapping

MORE = "what the next page of the answer holds, which it points to"
_RESOURCE = frozenset({"type", "id", "lid", "attributes", "relationships", "links", "meta"})
_CALLED = ("login", "username", "email")  # of people whom a record lists
_PAGES = frozenset(
    {"next", "previous", "prev", "count", "total", "page", "pages", "links", "meta", "pageInfo", "pagination", "paging",
     "cursor", "next_cursor", "response_metadata", "has_more", "offset", "limit"}
)  # fmt: skip


def plain(found: object) -> tuple[object, bool, tuple[str, ...]]:
    """(records, or records by kind; whether it is a page of an answer; what it names and does not hold).

    A resource of JSON:API becomes what it is called, its attributes, and the ids that it names; what is embedded (HAL), and
    GraphQL's ``edges`` of ``node``, become lists. Anything else stays as it is.
    """
    unread: dict[str, None] = {}
    if not isinstance(found, Mapping):
        return _plain(found, unread), False, tuple(unread)
    listed = found.get("data")
    if isinstance(listed, list) and _are_resources(listed):
        kinds: dict[str, list[object]] = {}
        for one in (*listed, *(found.get("included") or ())):
            kinds.setdefault(str(one["type"]), []).append(_plain(one, unread))
        return (kinds if len(kinds) > 1 else next(iter(kinds.values()))), True, (*unread, *_more(found))
    if isinstance(found.get("_embedded"), Mapping):
        return _alone(found["_embedded"], unread), True, (*unread, *_more(found))
    if isinstance(listed, Mapping) and found.keys() <= {"data", "errors", "extensions"} and _is_reply(listed):
        return _alone(listed, unread), True, _more(listed)
    lists = [key for key, one in found.items() if isinstance(one, list) and one and all(isinstance(o, Mapping) for o in one)]
    beside = {key for key, one in found.items() if key not in lists and not isinstance(one, list)}
    if len(lists) == 1 and len(beside) == len(found) - 1 and beside and beside <= _PAGES:
        return _plain(found[lists[0]], unread), True, (*unread, *_more(found))
    return found, False, ()


def _more(found: object) -> tuple[str, ...]:
    """Whether an answer says that it goes on."""
    if not isinstance(found, Mapping):
        return ()
    on = any(found.get(key) for key in ("next", "hasNextPage", "has_more", "next_cursor"))
    inside = (
        own for key, own in found.items() if key in (*_PAGES, "_links") or (isinstance(own, Mapping) and "pageInfo" in own)
    )
    return (MORE,) if on or any(_more(own) for own in inside) else ()


def _alone(found: object, unread: dict[str, None]) -> object:
    """The records of a container: without a name around the one list, however deep it lies."""
    while isinstance(found, Mapping) and len(found) == 1:
        (found,) = found.values()
        found = _nodes(found) or found
    if isinstance(found, Mapping):
        return {name: _plain(own, unread) for name, own in found.items()}
    return _plain(found, unread)


def _are_resources(found: list[object]) -> bool:
    return bool(found) and all(isinstance(own, Mapping) and {"type", "id"} <= own.keys() <= _RESOURCE for own in found)


def _is_reply(found: Mapping[str, object]) -> bool:
    return any(_nodes(one) is not None or isinstance(one, (list, Mapping)) for one in found.values())


def _nodes(found: object) -> list[object] | None:
    """The nodes of a connection of GraphQL; None of anything else."""
    if not isinstance(found, Mapping):
        return None
    edges = found.get("edges")
    if (
        isinstance(edges, list)
        and edges
        and all(isinstance(one, Mapping) and isinstance(one.get("node"), Mapping) for one in edges)
    ):
        return [one["node"] for one in edges]
    told = {"nodes", "edges", "pageInfo", "totalCount"}
    if (
        isinstance(nodes := found.get("nodes", found.get("edges")), list)
        and found.keys() <= told
        and ("pageInfo" in found or "totalCount" in found or not nodes)
    ):
        return nodes
    return None


def _plain(found: object, unread: dict[str, None]) -> object:
    if (nodes := _nodes(found)) is not None:
        found = nodes
    if isinstance(found, list):
        return [_plain(one, unread) for one in found]
    if not isinstance(found, Mapping):
        return found
    if len(found) == 1 and (key := next(iter(found))).startswith("$"):  # as MongoDB writes what JSON has no type for
        return _plain(found[key], unread)
    record: dict[str, object] = {key: own for key, own in found.items() if key not in ("_links", "_embedded")}
    if {"type", "id"} <= found.keys() <= _RESOURCE and {"attributes", "relationships"} & found.keys():
        record = {"id": found["id"], **(found.get("attributes") or {})}
        for name, related in (found.get("relationships") or {}).items():
            if isinstance(related, Mapping) and "data" in related:
                record[name] = related["data"]
            else:
                unread[f"relationship {name!r}, of which links alone are there (ask for include={name})"] = None
    record |= found.get("_embedded") or {}
    for name, links in (found.get("_links") or {}).items():
        if isinstance(links, list) and all(isinstance(one, Mapping) and "href" in one for one in links):
            record.setdefault(name, [str(one["href"]).rstrip("/").rpartition("/")[2] for one in links])
    named = {name: _plain(own, unread) for name, own in record.items()}
    told = {name: [key for key in ("id", *_CALLED) if _each(own, key)] for name, own in named.items()}
    called = {f"{name}.{key}": _each(named[name], key) for name, keys in told.items() for key in keys if key in _CALLED}
    return {name: _named(own) for name, own in named.items() if told[name][:1] in ([], ["id"])} | called


def _each(value: object, key: str) -> str:
    """What each of several records has there, in one text; "" of anything else."""
    if not (isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)):
        return ""
    each = [one.get(key) for one in value]
    return ", ".join(map(str, each)) if all(isinstance(one, (str, int)) for one in each) else ""


def _named(value: object) -> object:
    """The ids of others whom a record names; anything else as it is."""
    if value == [] or (ids := _each(value, "id")):
        return ids if value else ""
    if isinstance(value, Mapping) and {"type", "id"} <= value.keys() <= {"type", "id", "meta"}:
        return value["id"]
    return value

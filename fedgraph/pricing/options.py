"""A foreign mapping read key by key.

What has no meaning for the price is named (``without_price``), and what nobody read is refused (``finish``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedgraph.errors import PricingError
from fedgraph.plugins import suggest_plugin_name
from fedgraph.pricing import catalogue
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.parsers import ParsedTable, ParsedTree, parse_scalar

_MOST_WHOLE, _LARGEST = 10**12, 1e60


class Options:
    """The options of a file, or of a mapping inside it.

    Args:
        document: The file.
        data: The mapping; None for the document's own.
        at: The keys under which the mapping stands, for messages. At the top, the options of the system that have no price
            (``ignored`` in ``catalogue.yaml``) are known.
    """

    def __init__(self, document: PricedDocument, data: ParsedTable | None = None, at: tuple[str, ...] = ()) -> None:
        self._document, self._data, self._at = document, dict(document.data if data is None else data), at
        self._read = set() if at else set(catalogue.catalogue_entries()[document.system].ignored.split())

    def error(self, name: str, message: str) -> PricingError:
        return self._document.error(message, *self._at, name)

    def has(self, *names: str) -> bool:
        return any(self._data.get(name) is not None for name in names)

    def raw(self, name: str) -> ParsedTree:
        self._read.add(name)
        return self._data.get(name)

    def number(self, name: str, default: float | None = None, least: float = 0.0, above: bool = False) -> float | None:
        """A finite or infinite number ≥ ``least`` (> with ``above``); ``default`` where it is not given."""
        value = self.raw(name)
        if isinstance(value, str):
            value = parse_scalar(value)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise self.error(name, f"{name}: found {value!r}; a number is allowed")
        if math.isfinite(value) and abs(value) > _LARGEST:
            raise self.error(name, f"{name}: found {value:g}; numbers up to {_LARGEST:g} are priced")
        if 0 < abs(value) < 1 / _LARGEST:
            raise self.error(name, f"{name}: found {value:g}; numbers down to {1 / _LARGEST:g} (or 0) are priced")
        if value < least or (above and value == least):
            raise self.error(name, f"{name}: found {value}; allowed: {'>' if above else '≥'} {least:g}")
        return float(value)

    def need(self, name: str, least: float = 0.0, above: bool = False) -> float:
        """As ``number``; a missing key is an error."""
        if (found := self.number(name, None, least, above)) is None:
            raise self.error(name, f"missing option {name!r}; it is needed to price this file")
        return found

    def positive(self, name: str, default: float) -> float:
        """A number > 0; ``default`` where it is not given."""
        return self.number(name, default, above=True) or default

    def count(self, name: str, default: int | None, least: int = 1) -> int:
        """As ``whole``, and 0 where neither the option nor a default is given."""
        found = self.whole(name, default, least)
        return 0 if found is None else found

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int | None:
        if (found := self.number(name, None, least)) is None:
            return default
        if not math.isfinite(found) or found > _MOST_WHOLE or found != int(found):
            raise self.error(name, f"{name}: found {found:g}; a whole number up to {_MOST_WHOLE:,} is allowed")
        return int(found)

    def delta(self, name: str = "delta", default: float | None = None) -> float | None:
        found = self.number(name, default)
        if found is not None and not found < 1:
            raise self.error(name, f"{name}: found {found:g}; a δ lies in [0, 1)")
        return found

    def choice(self, name: str, allowed: Iterable[str], default: str | None = None) -> str:
        value, allowed = self.raw(name), list(allowed)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.error(name, f"missing option {name!r}; allowed: {', '.join(allowed)}")
        if str(value) not in allowed:
            hint = suggest_plugin_name(str(value), allowed)
            raise self.error(name, f"{name}: found {value!r}{hint}; allowed: {', '.join(allowed)}")
        return str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        if (value := self.raw(name)) is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"{name}: found {value!r}; true or false is allowed")
        return value

    def table(self, name: str) -> Options:
        value = self.raw(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(name, f"{name}: found {value!r}; a mapping of keys is expected")
        return Options(self._document, value or {}, (*self._at, name))

    def without_price(self, names: Iterable[str]) -> None:
        """Options that are known and change no price (model, data, device, logging …)."""
        self._read |= set(names)

    @property
    def rest(self) -> list[str]:
        """Options that nobody read."""
        return [name for name in self._data if name not in self._read]

    def finish(self, *also: str) -> None:
        """``PricingError`` naming the first option that is not known. also: others that a file of another kind has."""
        for name in self.rest:
            allowed = sorted(self._read | set(also))
            hint = suggest_plugin_name(name, allowed)
            raise self.error(name, f"unknown option {name!r}{hint}; allowed: {', '.join(allowed)}")

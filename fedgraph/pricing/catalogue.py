"""What is known of the systems whose configurations are priced: ``catalogue.yaml``, one entry a reader.

A document belongs to the one system whose entry recognises it (``reader_of``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from fedgraph import plugins
from fedgraph.errors import PricingError
from fedgraph.pricing.formats import table

if TYPE_CHECKING:
    from fedgraph.pricing.documents import Document

_PINNED = (r"requirements[\w.-]*\.txt", r"pyproject\.toml", r"environment\.ya?ml", r"setup\.(py|cfg)")


@dataclass(frozen=True)
class System:
    """An entry of ``catalogue.yaml``: what is known of one system.

    Attributes:
        name: What people call it.
        version: The versions that the reader was checked with.
        source: Where its facts were read, with commit and date.
        said: What its authors say of the option, in our words.
        recognised: Lines of tests (``LOOKS``). A document belongs to the system where all tests of one line hold.
        checked: Package → first and last version that was checked, where the system is installed as a package.
        calls: Class or function → its parameters in their order. Those after ``*`` go by name alone.
        ignored: Options, divided by spaces, that choose data, model, logging or hardware and change no price.
        reader: File of ``readers`` and function, such as ``gap.read_gap``. Where it is empty: ``KEY.read``.
        words: Key → sentence of its quotes.
    """

    name: str
    version: str
    source: str
    said: str = ""
    recognised: tuple[Mapping[str, list[str]], ...] = ()
    checked: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    reader: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def newer(self, folder: Path) -> Iterator[str]:
        """Files that ask for a later version of the system than the last that was checked.

        Args:
            folder: The folder of the configuration. Its files of requirements are read, up to a megabyte each.

        Yields:
            A sentence for each such file and package. Only the first two parts of a version count.
        """
        for path in sorted(p for p in folder.glob("*.*") if any(re.fullmatch(name, p.name) for name in _PINNED)):
            if not path.is_file() or path.stat().st_size > 1_000_000:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for package, (_, last) in self.checked.items():
                asked = re.search(
                    rf"(?<![\w-]){re.escape(package)}(?:\[[^\]]*\])?\s*(?:==|>=|~=|>)\s*([0-9]+(?:\.[0-9]+)*)", text
                )
                if asked and parts(asked[1])[:2] > parts(last)[:2]:
                    yield f"{path.name} asks for {asked[0]}; this reader was checked with {package} up to {last}"


def parts(version: str) -> tuple[int, ...]:
    """The numbers of a version, such as (2, 1, 0) for ``2.1.0``."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", version))


@cache
def entries() -> Mapping[str, System]:
    """Every entry of ``catalogue.yaml``, by its reader."""
    text = resources.files("fedgraph.pricing").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return {name: System(**entry) for name, entry in yaml.safe_load(text).items()}


@cache
def places(call: str) -> Mapping[str, int]:
    """Where the parameters of a call stand.

    Args:
        call: The last part of the name of a class or function.

    Returns:
        Parameter → place, counted from 0. Parameters that go by name alone are left out. Empty for a call that no system has.
    """
    listed = next((system.calls[call] for system in entries().values() if call in system.calls), "")
    return {name: place for place, name in enumerate(listed.partition("*")[0].split())}


def systems() -> list[str]:
    """The keys of all systems that are read."""
    return sorted(entries())


def reader_of(document: Document, system: str | None = None) -> str:
    """The system that a document belongs to.

    Args:
        document: The file, read as data.
        system: A key of ``systems()`` that the user named; None where the document is to tell.

    Returns:
        The key of the system.

    Raises:
        PricingError: There is no system of that name, no system recognises the document, or several do.
    """
    names = systems()
    if system is not None and system not in names:
        raise PricingError(f"--as {system}: unknown{plugins.suggest(system, names)}; allowed: {', '.join(names)}")
    found = [system] if system else []
    for name in names if system is None else ():
        if any(all(LOOKS[what](document, said) for what, said in line.items()) for line in entries()[name].recognised):
            found.append(name)
    if len(found) == 1:
        return found[0]
    if found:
        raise PricingError(f"{document.path}: could be {' or '.join(found)}; say which with --as")
    raise PricingError(
        f"{document.path}: no system known here writes this; say which with --as ({', '.join(names)}), or describe it in a "
        "neutral YAML (mechanism, unit, clip, noise_std, …)"
    )


def _lists(document: Document, key: str) -> bool:
    """Whether the document is a list, under the plural of ``key``, of mappings with that key."""
    held = document.data.get(f"{key}s")
    return isinstance(held, list) and all(isinstance(each, dict) and key in each for each in held)


# What a line of ``recognised`` may ask of a document; a line holds where all of it does.
LOOKS: Mapping[str, Callable[[Document, Collection[str]], bool]] = {
    "kinds": lambda document, kinds: document.kind in kinds,
    "keys": lambda document, keys: set(keys) <= {*document.data, *table(document.data.get("tool"))},
    "any_key": lambda document, keys: any(key in document.data for key in keys),
    "lists": lambda document, keys: all(_lists(document, key) for key in keys),
    "imports": lambda document, packages: document.imports_of(*packages),
    "no_import": lambda document, packages: not document.imports_of(*packages),
    "calls": lambda document, names: document.kind == "python" and any(call.name in names for call in document.calls),
    "made": lambda document, names: document.kind == "python" and bool(document.made(*names)),
    "configures": lambda document, names: set(names) <= set(document.configured),
    "first": lambda document, words: bool({*document.bare_words[:1]} & {*words}),
    "command": lambda document, words: any(word in said.lower() for said in document.command for word in words),
    "system": lambda document, names: document.data.get("system") in names,
}

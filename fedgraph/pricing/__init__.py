"""What does the privacy that is already deployed buy? Existing configurations, read as data and priced.

    price(path, system=None, fix=None) -> Quote       one file
    quote(document, reader, fix) -> Quote              the same, where the file is read already

A reader is one file of ``readers``, found by its name (``base`` states the contract). The file is parsed, never run
(``documents``, ``python_program``); the reader says what stands in it; ``quotes`` asks the accountants; ``as_sarif`` and
``pages`` show it.
This room knows privacy and no learning: nothing here needs torch or Ray.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType

from fedgraph import plugins
from fedgraph.errors import PricingError
from fedgraph.pricing import catalogue, documents, quotes, shell_script
from fedgraph.pricing.base import Quote
from fedgraph.pricing.documents import Document
from fedgraph.pricing.formats import table


def systems() -> list[str]:
    """The keys of all readers."""
    return plugins.names("pricing.readers")


def price(
    path: str | Path, system: str | None = None, fix: float | None = None, given: Mapping[str, float] | None = None
) -> Quote:
    """Price what an existing configuration buys. The file is read as data; nothing in it is run.

    Args:
        path: The configuration: a script, YAML, TOML or JSON of another system, or a neutral YAML.
        system: A key of ``systems()``, where the file does not tell whose it is.
        fix: An ε > 0; the quote then holds the settings of the same system that honestly buy it.
        given: Answers to its questions, by their names, such as ``{"sampling rate": 0.01, "steps": 2000}``.

    Returns:
        The quote: what the file claims, the ε (at its δ) that its noise provably buys, what is not protected, and questions
        where a fact is missing.

    Raises:
        PricingError: The file cannot be read, holds an option that is not known, or belongs to no system known here.

    Example:
        >>> import fedgraph
        >>> fedgraph.price("pyproject.toml", fix=8.0).headline
    """
    document = documents.read(Path(path))
    return quote(document, reader_of(document, system), fix, given)


def quote(document: Document, reader: ModuleType, fix: float | None = None, given: Mapping[str, float] | None = None) -> Quote:
    """Price a document that is read already.

    Args:
        document: The parsed file.
        reader: A module of ``fedgraph.pricing.readers``.
        fix: An ε > 0 to be bought honestly, or None.
        given: Answers to its questions, by their names.

    Returns:
        The quote of the document.

    Raises:
        PricingError: ``fix`` is not above 0, or the document holds an option that the reader does not know.
    """
    if fix is not None and not fix > 0:
        raise PricingError(f"--fix {fix:g}: an ε to buy is a number > 0")
    return quotes.ask_accountants(document, reader, fix, given)


def reader_of(document: Document, system: str | None = None) -> ModuleType:
    """The reader for a document; ``PricingError`` where none or several recognise it."""
    names = systems()
    if system is not None and system not in names:
        raise PricingError(f"--as {system}: unknown{plugins.suggest(system, names)}; allowed: {', '.join(names)}")
    found = [system] if system else [name for name in names if _recognises(name, document)]
    if len(found) == 1:
        return plugins.load("pricing.readers", found[0])
    if found:
        raise PricingError(f"{document.path}: could be {' or '.join(found)}; say which with --as")
    raise PricingError(
        f"{document.path}: no system known here writes this; say which with --as ({', '.join(names)}), or describe it in a "
        "neutral YAML (mechanism, unit, clip, noise_std, …)"
    )


def _recognises(name: str, document: Document) -> bool:
    """Whether a line of ``recognised`` in the catalogue holds in full, or the reader itself says so."""
    reader = plugins.load("pricing.readers", name)
    own: Callable[[Document], bool] | None = vars(reader).get("recognises")
    listed = catalogue.entries()[name].recognised
    return own(document) if own else any(all(LOOKS[what](document, said) for what, said in line.items()) for line in listed)


def _has_keys(document: Document, keys: Collection[str]) -> bool:
    return set(keys) <= {*document.data, *table(document.data.get("tool"))}


LOOKS: Mapping[str, Callable[[Document, Collection[str]], bool]] = {
    "kinds": lambda document, kinds: document.kind in kinds,
    "keys": _has_keys,
    "imports": lambda document, packages: document.imports_of(*packages),
    "calls": lambda document, names: document.kind == "python" and any(call.name in names for call in document.calls),
    "first": lambda document, words: bool({*shell_script.words(document)[:1]} & {*words}),
    "command": lambda document, words: any(word in said.lower() for said in document.command for word in words),
    "system": lambda document, names: document.data.get("system") in names,
}

"""Reads files of other systems as data. Nothing in them is ever executed.

    .yaml .yml    safe loader; no tags; aliases counted where they expand; duplicate keys refused
    .json         duplicate keys and NaN refused        .jsonl   a ledger of ours, left to its reader
    .toml         tomllib                               .py .ipynb   followed as a program (``python_program``)
    .conf         HOCON, or JSON (``hocon``)
    .sh .txt …    a command line, ``Namespace(…)`` as argparse prints it, or ``key: value`` / ``key=value`` lines

Every refusal is one line: ``file:line: found; allowed``. Limits: one megabyte, nesting of 60, 100,000 values with
aliases written out.
"""

import itertools
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph import plugins
from fedgraph.documents.sources import SourceLocation
from fedgraph.documents.sources import read_source_text as ordinary_text
from fedgraph.errors import PricingError, ScenarioError
from fedgraph.pricing import parsers
from fedgraph.pricing.catalogue import catalogue_entries, catalogue_places, systems
from fedgraph.pricing.open_facts import OPEN_FACT_QUESTIONS, OpenFactAnswers, open_fact_text
from fedgraph.pricing.parsers import ParsedTree, parsed_mapping
from fedgraph.pricing.python_program import PythonProgram
from fedgraph.pricing.python_values import CallValue, PartValue, TableValue, Value, python_plain

_SCRIPTS = ("command", "namespace", "json", "yaml")
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".conf": "json", ".toml": "toml"}
KINDS = (".yaml", ".yml", ".json", ".jsonl", ".toml", ".py", ".ipynb", ".conf", ".sh", ".txt", ".cmd", ".args", ".log")


@dataclass(frozen=True)
class PricedDocument:
    """One file, read as data."""

    path: Path  # the file, or the folder of a job
    kind: str  # ``yaml``, ``json``, ``toml``, ``python``, ``command``, ``namespace`` or ``ledger``
    data: dict[str, ParsedTree] = field(default_factory=dict)  # of a file, a command line or a namespace, by its keys
    command: tuple[str, ...] = ()  # the words of a command line
    text: str = ""  # A Python program
    lines: dict[SourceLocation, int] = field(default_factory=dict)  # of keys; empty for formats that keep no lines
    answers: OpenFactAnswers = field(default_factory=OpenFactAnswers)  # what the user says of facts that the file leaves open
    followed: PythonProgram | None = None  # the program of an app of several files; None where the file stands for itself
    written: Mapping[Path, str] = field(default_factory=dict)  # python files that a notebook writes beside it, with their texts
    system: str = ""  # the key of its reader; empty until that is known

    @property
    def words(self) -> Mapping[str, str]:
        """The sentences of its system."""
        return catalogue_entries()[self.system].words

    def ask(self, name: str, known: float | None = None, *about: object, **facts: object) -> float:
        """``known`` where the file says it; else what the user says, or a question of ``questions.yaml`` about ``facts``."""
        if known is not None:
            return known
        said = OPEN_FACT_QUESTIONS.get(f"{self.system} {name}") or OPEN_FACT_QUESTIONS[name]
        if said.whether:
            return float(self.answers.whether(name, said.whether.format(*about, **facts)))
        return self.answers.ask(name, said.ask.format(*about, **facts), said.values, said.worst)

    @property
    def bare_words(self) -> list[str]:
        """Words of a command after its script, or the values of ``method`` and ``level`` of a namespace; in small letters."""
        if self.kind == "command":
            scripts = [i for i, word in enumerate(self.command) if word.endswith(".py")]
            rest = self.command[scripts[0] + 1 :] if scripts else ()
            return [word.lower() for word in itertools.takewhile(lambda word: not word.startswith("-"), rest)]
        named = [self.data.get("method"), self.data.get("level")] if self.kind in _SCRIPTS else []
        return [value.lower() for value in named if isinstance(value, str)]

    @property
    def configured(self) -> dict[str, ParsedTree]:
        """What the file sets; of a Python file, the configuration that its ``get_config`` returns."""
        if self.kind != "python":
            return self.data
        made = python_plain(self.program.results.get("get_config", self.program.module.local.get("config")))
        held = {name: python_plain(value) for name, value in made.items()} if isinstance(made, TableValue) else {}
        return {name: v if v is None or isinstance(v, (bool, int, float, str)) else "?" for name, v in held.items()}

    @property
    def louder(self) -> float:
        """What all noise of the file is multiplied by."""
        return self.answers.louder

    @property
    def program(self) -> PythonProgram:
        """The file, and those of its folder that it imports, followed as a program."""
        return self.followed or self.follow(self.path, self.text)

    def follow(
        self, path: Path, text: str, config: Mapping[str, Value] | None = None, root: Path | None = None, *more: Path
    ) -> PythonProgram:
        """A program, followed once for all answers that it does not depend on (arguments: ``PythonProgram``)."""
        key = repr((path, root, more, sorted((config or {}).items()), sorted(self.answers.given.items())))
        if key not in self.answers.programs:
            self.answers.programs[key] = PythonProgram(
                path, text, priced_document_text, self.answers.given, config=config, root=root, more=more, written=self.written
            )
        found = self.answers.programs[key]
        self.answers.used |= found.used
        self.answers.notes |= found.skipped
        return found

    @property
    def imports(self) -> frozenset[str]:
        return frozenset(self.program.names) if self.kind == "python" or self.followed else frozenset()

    def imports_of(self, *packages: str) -> bool:
        """Whether a Python file imports something of one of these packages."""
        return self.kind == "python" and any(name.split(".")[0] in packages for name in self.imports)

    @property
    def calls(self) -> tuple[CallValue, ...]:
        """The calls of what is not part of the program, in order."""
        return tuple(call for call in self.program.calls if call.own is None)

    def made(self, *names: str) -> list[CallValue]:
        """The calls of these names that are reached. Where all of them stand in functions that nothing calls: none in a program
        that does something, all in a file that only defines."""
        found = [call for call in self.calls if call.name in names]
        live = [call for call in found if call.reached]
        if found and not live and not self.program.standalone:
            self.answers.notes[f"{found[0].function}() is called elsewhere; nothing in this file calls it"] = None
            return found
        return live

    def used(self, *names: str) -> tuple[list[CallValue], str]:
        """The calls of these names that are reached and taken, and, where there are none, why not."""
        found = self.made(*names)
        if taken := [call for call in found if self.answers.taken(call)]:
            return taken, ""
        if found:
            return [], f"{found[0].name} (line {found[0].line}) is only made where {' and '.join(found[0].conditions)} holds"
        if dead := self.dead(*names):
            return [], f"{dead.name} stands in {dead.function or 'a function'}() (line {dead.line}), which nothing calls"
        return [], f"nothing calls {names[0]}"

    def dead(self, *names: str) -> CallValue | None:
        """A call of these names that nothing reaches, where no other one is reached."""
        found = [call for call in self.calls if call.name in names and not call.reached]
        return found[0] if found and not self.made(*names) else None

    def number(self, call: CallValue, name: str, asked: str = "") -> float | None:
        """The number of an argument, or what the program sets on the object later; None where it is not given.

        asked: the fact's name where it is not the argument's.
        """
        return self.answers.number(call.held(name), asked or name, call.set_at.get(name, call.line))

    def need(
        self, call: CallValue, name: str, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
    ) -> float:
        """As ``number``; where it is missing or not ≥ ``least``, > ``above`` and < ``below``, an error."""
        value = self.number(call, name)
        if value is None or value < least or value <= above or value >= below:
            bound = f"≥ {least:g}" if least > -math.inf else f"> {above:g}" if above > -math.inf else ""
            bound = f"in ({max(above, 0):g}, {below:g})" if below < math.inf else bound
            message = f"{call.name} needs {name} as a number {bound}, found {open_fact_text(call.held(name))}; write it out"
            raise self.error_at(call, f"{message}, or answer --given {name}=…")
        return value

    def exchanged(self) -> str:
        """Why a library may not do what it does elsewhere: the program exchanges one of its functions."""
        for program in self.answers.programs.values():
            imported = {name.partition(".")[0] for name in program.names}
            for name, line in program.replaced.items():
                if name.partition(".")[0] not in imported:
                    continue
                asked = f"Line {line} exchanges {name}: is the same noise still added?"
                if not self.answers.whether(f"noise kept at line {line}", asked):
                    return f"line {line} exchanges {name}, and what it does then is not followed"
        return ""

    def altered(self, made: CallValue | PartValue, *harmless: str) -> str:
        """Why a mechanism may not be what it was made as: something else of it is set later."""
        name = made.name if isinstance(made, CallValue) else made.call.name
        for attribute, line in made.set_at.items():
            asked = f"Line {line} sets {attribute} of what {name} makes: does it still clip and add the same noise?"
            known = attribute in catalogue_places(name) or attribute in harmless
            if not known and not self.answers.whether(f"mechanism kept at line {line}", asked):
                return f"line {line} sets {attribute} of what {name} makes, which is not followed"
        return ""

    def line(self, *keys: str) -> int:
        """The line of a key, or of the nearest one above it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def error(self, message: str, *keys: str, line: int | None = None, path: Path | None = None) -> PricingError:
        return PricingError(f"{path or self.path}:{line or self.line(*keys)}: {' '.join(message.split())}")

    def error_at(self, call: CallValue, message: str) -> PricingError:
        """An error at a call, with the file and the line in which it stands."""
        return self.error(message, line=call.line, path=call.path)


def read_priced_document(path: Path) -> PricedDocument:
    """A file as data. Nothing in it is run.

    Args:
        path: A file; or the folder of an app, of a FLARE job, of a run or of an export.

    Returns:
        The document, without answers and system.

    Raises:
        PricingError: One line, where it is missing, larger than a megabyte, of another type, damaged, or expands without end.
    """
    if path.is_dir():
        if (job := _job(path)) is not None:
            return job
        names = ("fedgraph_export.json", "pyproject.toml", "ledger.jsonl", "config_fed_client.json")
        if (inside := next((path / name for name in names if (path / name).is_file()), None)) is None:
            raise PricingError(f"{path}: a folder without pyproject.toml or ledger.jsonl; name the file to price")
        path = inside
    suffix = path.suffix.lower()
    if suffix == ".jsonl" and path.is_file():
        return PricedDocument(path, "ledger")
    text = priced_document_text(path)
    try:
        if suffix in _FORMATS:
            data, lines = parsers.parse_file(path, suffix, text)
            return PricedDocument(path, _FORMATS[suffix], data, lines=lines)
        if suffix in (".py", ".ipynb"):
            text, written = (text, {}) if suffix == ".py" else parsers.parse_notebook(path, text)
            return PricedDocument(path, "python", text=text, written=written)
        if suffix in KINDS or not suffix:
            return priced_document_from_text(path, text)
        raise PricingError(f"{path}: unknown file type {suffix!r}; allowed: {', '.join(KINDS)}")
    except RecursionError:
        raise PricingError(f"{path}:1: nested too deeply; at most {parsers.DEEPEST} levels are read") from None


def priced_document_text(path: Path) -> str:
    """The text of an ordinary file of at most one megabyte. ``PricingError`` in one line for anything else."""
    try:
        return ordinary_text(path, f"a configuration ({', '.join(KINDS)})")
    except ScenarioError as error:
        raise PricingError(str(error)) from None


def _job(folder: Path) -> PricedDocument | None:
    """The folder of a FLARE job: its ``meta.json`` and the configurations of its apps; None where it is none."""
    found: list[Path] = []
    for above in ("*/", ""):
        ends = ("json", "conf", "yml", "yaml")
        found = found or [p for end in ends for p in sorted(folder.glob(f"{above}config/config_fed_*.{end}"))]
    if not found:
        return None
    if len(found) > 100:
        raise PricingError(f"{folder}: a job of {len(found)} configurations; at most 100 are read")
    apps: dict[str, dict[str, ParsedTree]] = {}
    for path in found:
        app = path.parents[1]
        apps.setdefault(app.name if app != folder else "app", {})[path.stem] = dict(read_priced_document(path).data)
    metas = [folder / name for name in ("meta.json", "meta.conf") if (folder / name).is_file()]
    meta = read_priced_document(metas[0]).data if metas else {}
    return PricedDocument(folder, "json", {"meta": dict(meta), "apps": dict(apps)})


def priced_document_from_text(path: Path, text: str) -> PricedDocument:
    """A document of a text that has no suffix to tell its format.

    Args:
        path: What messages call it.
        text: A command line, a printed ``Namespace(…)``, or lines of ``key: value`` or ``key=value``.

    Returns:
        The document, of kind ``command`` or ``namespace``.

    Raises:
        PricingError: It is none of these.
    """
    body = "\n".join(row for row in text.splitlines() if not row.lstrip().startswith("#")).strip()
    if re.match(r"^(argparse\.)?Namespace\(", body):
        return PricedDocument(path, "namespace", parsers.parse_namespace(path, body))
    if re.search(r"(^|\s)(python3?|torchrun|accelerate|\S+\.py|\S*compute_dp_sgd_privacy\w*)\s", body + " "):
        words = parsers.parse_python_line(path, body)
        return PricedDocument(path, "command", parsers.parse_priced_command(words), tuple(words))
    pairs = [re.match(r"^\s*(?:--)?([\w.-]+)\s*[:=]\s*(.*?)\s*$", row) for row in body.splitlines() if row.strip()]
    if pairs and all(pairs):
        return PricedDocument(path, "namespace", {m[1].replace("-", "_"): parsers.parse_scalar(m[2]) for m in pairs if m})
    raise PricingError(f"{path}:1: not a command line, not Namespace(…) and not key: value lines")


def priced_document_reader(document: PricedDocument, system: str | None = None) -> str:
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
        raise PricingError(f"--as {system}: unknown{plugins.suggest_plugin_name(system, names)}; allowed: {', '.join(names)}")
    found = [system] if system else []
    for name in names if system is None else ():
        lines = catalogue_entries()[name].recognised
        if any(all(_LOOKS[what](document, said) for what, said in line.items()) for line in lines):
            found.append(name)
    if len(found) == 1:
        return found[0]
    if found:
        raise PricingError(f"{document.path}: could be {' or '.join(found)}; say which with --as")
    as_or = f"say which with --as ({', '.join(names)}), or describe it in a neutral YAML (mechanism, unit, clip, noise_std, …)"
    raise PricingError(f"{document.path}: no system known here writes this; {as_or}")


def _lists(document: PricedDocument, key: str) -> bool:
    """Whether the document is a list, under the plural of ``key``, of mappings with that key."""
    held = document.data.get(f"{key}s")
    return isinstance(held, list) and all(isinstance(each, dict) and key in each for each in held)


# What a line of ``recognised`` may ask of a document; a line holds where all of it does.
_LOOKS: Mapping[str, Callable[[PricedDocument, Collection[str]], bool]] = {
    "kinds": lambda document, kinds: document.kind in kinds,
    "keys": lambda document, keys: set(keys) <= {*document.data, *parsed_mapping(document.data.get("tool"))},
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

"""The command ``fedgraph``: ``fedgraph COMMAND …``. A command is a file of ``fedgraph/commands``, or one of several in a file.

Files that a command writes are whole or not there, and never replace something without being asked.
Exit status: 0 on success; 2 with one line on stderr for each fault where a file or an option is wrong; 1 otherwise.
"""

import argparse
import atexit
import gc
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fedgraph import plugins
from fedgraph.errors import DataError, FedgraphError, PricingError, ScenarioError
from fedgraph.printing import replace_unprintable

atexit.register(gc.freeze)  # a process that ends looks through all objects of its libraries for garbage: a second of torch's
_BESIDE = {  # command → the file that holds it beside the one of its name
    "check": "run", "compare": "show", "cp": "run", "explain": "show", "model": "fit", "predict": "fit", "schema": "run",
    "site": "export", "watch": "show",
}  # fmt: skip
_WRONG_INPUT = (ScenarioError, DataError, PricingError)
_TRACEBACK = "FEDGRAPH_TRACEBACK"
_MOST_CHARACTERS = 1_000  # of the line that an error becomes
_ended = threading.Event()  # by SIGTERM; Ray raises an exception of its own for every signal, so the exception cannot say it


class CommandParser(argparse.ArgumentParser):
    """An option that is wrong is one line, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see --help\n")


def guard(act: Callable[[], int]) -> int:
    """Runs a command so that no error ends in a page of Python, and gives its exit status.

    Every error becomes one line on stderr; several faults of data become a line each. SIGTERM ends a command as Ctrl-C does.
    Status: that of ``act``; 2 where a file or an option is wrong; 1 for any other error.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminated) if main else None
    try:
        return _guarded(act)
    finally:
        if before is not None:  # a caller of this process goes on with its own handler
            signal.signal(signal.SIGTERM, before)


def _guarded(act: Callable[[], int]) -> int:
    try:
        return act()
    except KeyboardInterrupt as error:
        how = "terminated" if _ended.is_set() else "interrupted"
        return _say(f"{how}; {error}" if str(error) else how, 1)
    except DataError as error:
        for fault in str(error).splitlines():
            _say(fault, 2)
        return 2
    except _WRONG_INPUT as error:
        return _say(str(error), 2)
    except FedgraphError as error:
        return _say(f"fedgraph: {error}", 1)
    except BrokenPipeError:  # the reader of our output has closed it, so no message can reach it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(_noted(f"fedgraph: {where}{error.strerror or error}", error), 1)
    except MemoryError as error:
        return _say(_noted(f"fedgraph: not enough memory ({str(error) or 'no size told'})", error), 1)
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        return _say(f"fedgraph: unforeseen {type(error).__name__}: {error}; {_TRACEBACK}=1 shows where", 1)


def _noted(said: str, error: Exception) -> str:
    """``said`` and what a command added to the error (``Exception.add_note``)."""
    return "; ".join((said, *getattr(error, "__notes__", ())))


def _terminated(number: int, frame: object) -> None:
    _ended.set()
    raise KeyboardInterrupt


def _say(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…", file=sys.stderr)
    return status


def version() -> str:
    """The installed version.

    Returns:
        A text such as ``0.3.0``, or words for a checkout that was never installed.
    """
    from importlib import metadata

    try:
        return metadata.version("fedgraph-privacy")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"fedgraph {version()}")
        parser.exit()


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands and their options. only: the name of a command that alone is needed; others are not imported then."""
    p = CommandParser(
        prog="fedgraph",
        description="Private learning on graphs: what accuracy, at which ε as published, at which ε that can be proven, and "
        "what an attacker could measure.",
    )
    p.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    every = names()
    for name in [only] if only in every else every:
        held, end = vars(plugins.load("commands", _BESIDE.get(name, name))), f"_{name}" if name in _BESIDE else ""
        said = held[f"HELP{end.upper()}"]
        one = commands.add_parser(name, help=said, description=said)
        held[f"configure{end}"](one)
        one.set_defaults(act=held[f"run{end}"])
    return p


def names() -> list[str]:
    """All commands, sorted."""
    return sorted({*plugins.names("commands"), *_BESIDE})


def add_scenario(to: argparse.ArgumentParser, quick: str) -> None:
    """SCENARIO, and how it is changed and where its data lie. quick: what ``--quick`` does."""
    to.add_argument("scenario", metavar="SCENARIO", help="YAML file, or the name of a shipped scenario")
    to.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="change a key (dotted)")
    to.add_argument("--quick", action="store_true", help=quick)
    to.add_argument("--data-root", type=Path, metavar="DIR", help="folder with data; never written to")


def add_row(to: argparse.ArgumentParser) -> None:
    """RUN and ROW."""
    named = "a row's name, as fedgraph show prints it; some of its words are enough, and e=4 is ε=4"
    to.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    to.add_argument("row", metavar="ROW", help=named)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; gives its exit status. arguments: words after ``fedgraph``; None for those of this process."""
    replace_unprintable()

    def act() -> int:
        given = sys.argv[1:] if arguments is None else arguments
        options = parser(given[0] if given else None).parse_args(given)
        status: int = options.act(options)
        sys.stdout.flush()
        return status

    return guard(act)


def require_free_file(path: Path, replace: bool = False) -> None:
    """``ScenarioError`` where ``path`` is a folder, or a file that nobody asked to replace."""
    if path.exists() and (path.is_dir() or not replace):
        what = "is a folder" if path.is_dir() else "exists already; say --force to replace it"
        raise ScenarioError(f"{path}: {what}")
    above = next((p for p in path.absolute().parents if p.exists()), None)
    if above is not None and not above.is_dir():
        raise ScenarioError(f"{path}: cannot be written: {above} is not a folder")


def write_file(path: Path, content: bytes, replace: bool = False) -> None:
    """``content`` as ``path``. ``ScenarioError`` where the file is there and ``replace`` is not said, or cannot be written."""
    require_free_file(path, replace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written: {error.strerror or error}") from error

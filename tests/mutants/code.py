"""Faults in the shipped code, each with a check of what the code promises, which must fail where the fault is put in.

    mutant.check()                      passes
    with mutant.broken(): mutant.check()    AssertionError

A check looks at what a run, a plan, a ledger or a model shows, over all methods or events that the promise is about. The bench
of mechanisms judges what is released by its law; these are faults that no law of one release shows. Each file of ``_FILES`` has
its ``MUTANTS``; one about a single method stands alone, so that it can go where the method goes.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

from fedgraph import plugins

_FILES = {  # file → the method that it is about, which may stand in a package of its own; empty: several, or none
    "promises": "",
    "samples": "",
    "heter_poisson_rates": "heter_poisson",
    "label_hop_meetings": "label_hop",
    "own_model_examples": "own_model",
}
Breaks = list[tuple[object, str, object]]  # (owner, name, what stands there instead), all put in place together


@dataclass(frozen=True)
class CodeMutant:
    """A fault. breaks: puts it in place. check: raises ``AssertionError`` where the code does not keep its promise."""

    name: str
    breaks: Callable[[], Breaks]
    check: Callable[[], None]

    @contextlib.contextmanager
    def broken(self) -> Iterator[None]:
        """The fault, as long as it lasts."""
        with contextlib.ExitStack() as held:
            for patch in self.breaks():
                held.enter_context(mock.patch.object(*patch))
            yield

    @property
    def holds(self) -> bool:
        """Whether the check passes now."""
        try:
            self.check()
        except AssertionError:
            return False
        return True


def all_code_mutants() -> list[CodeMutant]:
    """Of every file whose method is installed."""
    here = [name for name, method in _FILES.items() if not method or method in plugins.names("methods")]
    return [mutant for name in here for mutant in importlib.import_module(f"tests.mutants.{name}").MUTANTS]


def judge_code_mutants(mutants: list[CodeMutant]) -> tuple[int, int]:
    """(how many faults are caught, how many checks accuse the code as it is)."""
    accused = sum(not mutant.holds for mutant in mutants)
    caught = 0
    for mutant in mutants:
        with mutant.broken():
            caught += not mutant.holds
    return caught, accused

"""A trained row that can be kept, read back and asked.

model = fedgraph.open_run("runs/mine").best(epsilon=4).fit("people")       # or: fedgraph fit runs/mine ROW --graph people
model.save("people.model")
fedgraph.load("people.model").predict("newcomers", people="public")        # or: fedgraph predict people.model newcomers
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedgraph.errors import DataError, PrivacyError
from fedgraph.methods import Plan, State, method_kinds
from fedgraph.models import answers, model_file
from fedgraph.privacy import LedgerAccount, LedgerLine, settle
from fedgraph.types import Graph

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Model(answers.AnswerSource):
    """One training of one row, and all that its answers need.

    Attributes:
        reading: how own tables are read (bounds, texts, empty cells).
        delta: δ of its guarantee.
        statement: what the training protects, one sentence each.
        ledger: what it cost, and toward whom: JSON lines, the account first.
        versions: of what it was made with.
    """

    reading: Mapping[str, object]
    delta: float
    statement: tuple[str, ...]
    ledger: tuple[str, ...]
    versions: Mapping[str, str]

    @cached_property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of ``predict_proba``; their numbers where the data named none."""
        return np.array(self.names.classes or [str(k) for k in range(self.plan.facts.num_classes)])

    def predict(self, data: object, people: str | None = None, nothing_protected: bool = False) -> np.ndarray:
        """The class of each node of ``data``; the arguments are those of ``predict_proba``."""
        return self.classes_[self.predict_proba(data, people, nothing_protected).argmax(axis=1)]

    def predict_proba(self, data: object, people: str | None = None, nothing_protected: bool = False) -> np.ndarray:
        """float64 [n, c], each row adding up to 1.

        Args:
            data: a folder of CSV files, an ``.npz`` file, or a graph in memory as for ``fedgraph.compare``, without labels.
            people: ``public`` (the rows of these people and the edges among them are public) or ``own`` (each answer is
                shown to its own person alone).
            nothing_protected: needed for a model whose ε is ∞.

        Raises:
            PrivacyError: an answer would release what nobody has priced; the line says what to do.
            DataError: the columns are not those of the model.
        """
        graph = data if isinstance(data, Graph) else self.graph_of(data)
        found = answers.scores_of(self, graph, people, nothing_protected)
        if (found < 0).any() or not np.allclose(found.sum(axis=1), 1.0):  # scores of other methods are logits
            found = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)

    def answers(self, graph: Graph, people: str | None = None, nothing_protected: bool = False) -> pandas.DataFrame:
        """One line per node: its id, the most likely class, and the probability of each.

        Args:
            graph: who is asked about.
            people: as in ``predict_proba``.
            nothing_protected: as in ``predict_proba``.
        """
        import pandas

        shares = self.predict_proba(graph, people, nothing_protected)
        table = pandas.DataFrame({"id": list(graph.ids), "class": self.classes_[shares.argmax(axis=1)]})
        return table.join(pandas.DataFrame(shares, columns=[f"p({name})" for name in self.classes_]))

    def score_pairs(self, pairs: Iterable[Sequence[object]], nothing_protected: bool = False) -> np.ndarray:
        """float64 [m], of a model of links: the larger a score, the likelier is a tie; only their order counts.

        Args:
            pairs: two ids each, of people who trained; a pandas table of two columns is ``table.to_numpy()``.
            nothing_protected: needed for a model whose ε is ∞.

        Raises:
            DataError: somebody did not train, what is no pair or a pair of one person, or the model gives nodes a class.
            PrivacyError: an answer would release what nobody has priced.
        """
        asked = list(pairs)
        for pair in asked:
            if isinstance(pair, str) or len(pair) != 2:
                raise DataError(f"{pair!r} is no pair; allowed: two ids of people who trained")
        return answers.pair_scores(self, [(str(one), str(two)) for one, two in asked], nothing_protected)

    def answer_file(self, path: str, people: str | None = None, nothing_protected: bool = False) -> pandas.DataFrame:
        """What ``fedgraph predict`` writes: ``answers`` of the graph in a file, or (of a model of links) a table's pairs with
        scores.

        Args:
            path: a folder or file with a graph, or a CSV table of pairs.
            people: as in ``predict_proba``.
            nothing_protected: as in ``predict_proba``.
        """
        if method_kinds.load(self.method).OFFERS.kind != "linker":
            return self.answers(self.graph_of(path), people, nothing_protected)
        import pandas

        pairs = answers.read_pairs(Path(path), self.people)
        return pandas.DataFrame(pairs, columns=["source", "target"]).assign(score=self.score_pairs(pairs, nothing_protected))

    def graph_of(self, data: object) -> Graph:
        """``data`` read as the training data were, without labels."""
        return read_people(data, self.reading, labelled=False)[0]

    def to_bytes(self) -> bytes:
        """The model's file."""
        return model_file.to_bytes(self)

    def save(self, path: str | Path) -> None:
        """Write the model's file.

        Args:
            path: where nothing is yet.

        Raises:
            DataError: something is there already, or the file cannot be written.
        """
        try:
            with Path(path).open("xb") as out:
                out.write(self.to_bytes())
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}; a model is never replaced") from error


def load(path: str | Path) -> Model:
    """Read a model that ``fedgraph fit`` or ``Model.save`` wrote.

    Args:
        path: the file.

    Returns:
        The model; ``predict`` and ``predict_proba`` ask it.

    Raises:
        DataError: another file, a damaged or an edited one; one whose ledger does not cost what it states.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"load: found {path!r}; allowed: a file that 'fedgraph fit' wrote")
    found = model_file.read(Path(path))
    if not isinstance(found, Model) or found.plan.method != found.method:
        raise DataError(f"{path}: holds no model; allowed: a file that 'fedgraph fit' wrote")
    try:
        said, *lines = (json.loads(line) for line in found.ledger)
        account = LedgerAccount.from_dict(said)
        cost = settle.of_account(account, [LedgerLine.from_dict(line) for line in lines]).epsilon
    except (ValueError, KeyError, TypeError, PrivacyError) as error:
        raise DataError(f"{path}: its ledger cannot be read ({' '.join(str(error).split())[:200]})") from error
    if not math.isclose(cost, found.epsilon, rel_tol=1e-6):
        raise DataError(f"{path}: states ε = {found.epsilon:.4g}, and its ledger costs ε = {cost:.4g}: it was edited")
    if found.delta != account.delta:
        raise DataError(f"{path}: states δ = {found.delta:.4g}, and its ledger is of δ = {account.delta:.4g}: it was edited")
    return found


def read_people(data: object, reading: Mapping[str, object], labelled: bool = True) -> tuple[Graph, Mapping[str, object]]:
    """(somebody's own data, the name of a data set, or a graph in memory; how others are read in the same way).

    labelled: whether labels are read.

    Raises:
        DataError: one line that says what was found and what is allowed.
    """
    from fedgraph import data as library
    from fedgraph.data import ReadRules, read

    if isinstance(data, (str, Path)) and not Path(data).expanduser().exists():
        found, same = library.load(str(data)), reading
    else:
        rules = {key: value for key, value in reading.items() if key in ReadRules.model_fields}
        told = read(data, columns=rules, labelled=labelled)
        found, same = told.graph, told.parameters
    if not isinstance(found, Graph):
        raise DataError(f"{data}: a collection of graphs; allowed: one graph of people")
    return found, same


def strip_rows(plan: Plan, state: State) -> tuple[Plan, State]:
    """Plan and state as a model keeps them: without the public graph, and without what was kept for attacks."""
    return replace(plan, facts=replace(plan.facts, public_graph=None)), replace(state, seen=())

"""Classification from a distance matrix: a support vector machine on exp(−γ D), and nearest neighbours.

The Gromov-Wasserstein kernel exp(−γ D) is not positive semi-definite in general, and a support vector
machine assumes it is. What is done about it is a setting, and the most negative eigenvalue is reported:

- ``as_is``  the indefinite kernel goes to the solver (a stationary point, as in the published code);
- ``clip``   negative eigenvalues become zero;
- ``shift``  the spectrum is raised by the most negative eigenvalue: K + |λ_min| I.

``clip`` and ``shift`` change the kernel of all graphs together, test graphs included but never their
labels (a transductive treatment; Chen et al. 2009, section 4).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg

IndefiniteKernelHandling = Literal["as_is", "clip", "shift"]
_COSTS = tuple(10.0**k for k in range(-7, 8))
_GAMMAS = tuple(2.0**k for k in range(-10, 11))
_INNER_FOLDS = 3  # at most
_MOST_ITERATIONS = 20_000  # of the solver, which may not converge at huge C
_VANISHING = 1e-30  # beside a diagonal of ones; left in, entries near the end of double precision can stop LAPACK


@dataclass(frozen=True, eq=False)
class ClassifySplit:
    """Row numbers of one round."""

    train: np.ndarray  # Rows to learn from
    validation: np.ndarray  # Rows that choose settings; where there are none, inner folds of ``train`` choose
    test: np.ndarray  # Rows that are classified


@dataclass(frozen=True, eq=False)
class Classified:
    """What a classifier named.

    Attributes:
        accuracies: float64 [rounds], on the test rows.
        chosen: The settings of each round, picked on training and validation rows only.
        most_negative: float64 [rounds], the smallest eigenvalue of the chosen kernel before handling; NaN for methods without a
            kernel.
        named: For each round the class that each test row was given.
    """

    accuracies: np.ndarray
    chosen: tuple[dict[str, float], ...]
    most_negative: np.ndarray
    named: tuple[np.ndarray, ...]

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def std(self) -> float:
        return float(self.accuracies.std())


def _kernel(distances: np.ndarray, gamma: float, handling: IndefiniteKernelHandling = "clip") -> tuple[np.ndarray, float]:
    """exp(−γ D) made fit for a support vector machine, and its smallest eigenvalue before that."""
    if handling not in ("as_is", "clip", "shift"):
        raise ValueError(f"unknown handling {handling!r}; allowed: 'as_is', 'clip', 'shift'")
    gram = np.exp(-gamma * np.asarray(distances, dtype=np.float64))
    gram = 0.5 * (gram + gram.T)
    gram[gram < _VANISHING] = 0.0
    try:
        values, vectors = np.linalg.eigh(gram)  # by divide and conquer; where that fails by QR, slower and surer
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(gram, driver="ev")
    lowest = float(values[0])
    if handling == "clip" and lowest < 0:
        gram = (vectors * np.clip(values, 0.0, None)) @ vectors.T
    elif handling == "shift" and lowest < 0:
        gram[np.diag_indices_from(gram)] -= lowest
    return gram, lowest


def by_svm(
    distances: np.ndarray,
    labels: np.ndarray,
    splits: tuple[ClassifySplit, ...],
    rng: np.random.Generator,
    handling: IndefiniteKernelHandling = "clip",
    costs: tuple[float, ...] = _COSTS,
    gammas: tuple[float, ...] = _GAMMAS,
) -> Classified:
    """Support vector machine with C and γ chosen inside each round (nested: test rows play no part).

    A round with validation rows chooses on them; one without chooses by stratified folds of its training rows. Ties go to the
    smallest C, then the smallest γ.

    Args:
        distances: [n, n].
        labels: [n].
        splits: The rounds.
        rng: Draws the folds.
        handling: What is done about negative eigenvalues.
        costs: C that are tried; by default the paper's 10^-7 … 10^7.
        gammas: γ that are tried; by default the paper's 2^-10 … 2^10.
    """
    from sklearn.model_selection import StratifiedKFold  # not before it is used: every run lists all tasks

    labels = np.asarray(labels)
    grams = [_kernel(distances, gamma, handling) for gamma in gammas]
    named, chosen, lowest = [], [], []
    for split in splits:
        if split.validation.size:
            inner = [(split.train, split.validation)]
        else:
            fewest = np.bincount(np.unique(labels[split.train], return_inverse=True)[1]).max()
            count = max(2, min(_INNER_FOLDS, int(fewest)))
            folds = StratifiedKFold(count, shuffle=True, random_state=int(rng.integers(2**31)))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
                parts = list(folds.split(np.zeros(split.train.size), labels[split.train]))
            inner = [(split.train[train], split.train[test]) for train, test in parts]
        table = np.zeros((len(costs), len(grams)))  # rows C, columns γ: argmax takes the first of equals
        for at in np.ndindex(*table.shape):
            named_of = [_svm_names(grams[at[1]][0], labels, train, test, costs[at[0]]) for train, test in inner]
            table[at] = np.mean([(found == labels[test]).mean() for found, (_, test) in zip(named_of, inner, strict=True)])
        best = np.unravel_index(int(table.argmax()), table.shape)
        cost, (gram, smallest) = costs[best[0]], grams[best[1]]
        fit_on = np.sort(np.concatenate([split.train, split.validation]))
        named.append(_svm_names(gram, labels, fit_on, split.test, cost))
        chosen.append({"C": cost, "gamma": gammas[best[1]], "validation": float(table[best])})
        lowest.append(smallest)
    return Classified(_right(named, labels, splits), tuple(chosen), np.array(lowest), tuple(named))


def by_nearest(distances: np.ndarray, labels: np.ndarray, splits: tuple[ClassifySplit, ...], k: int) -> Classified:
    """k nearest neighbours, fitted on training and validation rows; nothing is chosen.

    A tied vote goes to the class of the nearest of the tied neighbours.

    Args:
        distances: [n, n].
        labels: [n].
        splits: The rounds.
        k: Lowered to the rows there are.
    """
    labels = np.asarray(labels)
    named = []
    for split in splits:
        known = np.sort(np.concatenate([split.train, split.validation]))
        named.append(_vote(np.asarray(distances)[np.ix_(split.test, known)], labels[known], k))
    chosen = tuple({"k": float(k)} for _ in splits)
    return Classified(_right(named, labels, splits), chosen, np.full(len(splits), np.nan), tuple(named))


def _right(named: Sequence[np.ndarray], labels: np.ndarray, splits: Sequence[ClassifySplit]) -> np.ndarray:
    """float64 [rounds]: the share of test rows that were given their own class."""
    return np.array([float((found == labels[split.test]).mean()) for found, split in zip(named, splits, strict=True)])


def _vote(distances: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """The majority label among the k nearest columns of each row: distances [t, s], labels [s] → [t]."""
    if k < 1:
        raise ValueError(f"k must be at least 1, found {k}")
    names, index = np.unique(labels, return_inverse=True)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    votes = np.eye(names.size)[index[order]]  # [t, k, classes]
    closeness = np.arange(order.shape[1], 0, -1)[None, :, None] / (2.0 * order.shape[1] * (order.shape[1] + 1))
    return names[(votes.sum(axis=1) + (votes * closeness).max(axis=1)).argmax(axis=1)]


def _svm_names(gram: np.ndarray, labels: np.ndarray, train: np.ndarray, test: np.ndarray, cost: float) -> np.ndarray:
    """The class that each test row is given, [t]."""
    if np.unique(labels[train]).size == 1:
        return np.full(test.size, labels[train[0]])
    from sklearn import config_context  # not before it is used: every run lists all tasks
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    model = SVC(C=cost, kernel="precomputed", max_iter=_MOST_ITERATIONS, cache_size=100)
    # Checks of settings and of finite numbers take longer than a small fit; ``_kernel`` has seen every number.
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(gram[np.ix_(train, train)], labels[train])
        return np.asarray(model.predict(gram[np.ix_(test, train)]))

"""Texts of small scenarios on the shipped graph, which tests change and run."""

from __future__ import annotations


def small(method: str, task: str = "    trust: [curator]\n", **keys: str) -> str:
    """One row of node classification at ε = 1 and ∞. task: further lines of the task. keys: of the scenario."""
    head = "".join(f"{key}: {value}\n" for key, value in {"name": "tiny", **keys}.items())
    data = "datasets:\n  - name: embedded/library\n"
    return f"{head}{data}tasks:\n  - task: node_classification\n    epsilons: [1, inf]\n{task}    methods:\n      - {method}\n"


GOOD = small("method: features\n        model: logistic", "    delta: 1e-3\n    trust: [curator]\n", seeds="2")

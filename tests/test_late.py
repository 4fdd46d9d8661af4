"""What only plans and writes starts without the libraries that compute."""

import subprocess
import sys

LATE = (
    "torch", "torch_geometric", "numba", "sklearn", "ot", "networkx", "pandas", "altair", "ray", "dp_accounting",
)  # fmt: skip
LISTED = """
import sys
import fedgraph.run, fedgraph.runs.experiment, fedgraph.runtime, fedgraph.plugins as plugins
for room in ("methods", "tasks"):
    for name in plugins.names(room):
        plugins.load(room, name)
print(*sorted(sys.modules))
"""


def test_every_method_and_task_is_listed_without_what_computes() -> None:
    loaded = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True).stdout.split()
    assert "fedgraph.methods.features" in loaded
    assert "fedgraph.tasks.graph_clustering" in loaded
    assert not set(LATE) & set(loaded)

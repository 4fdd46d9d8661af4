"""Tables and figures of single papers, beside their scenarios.

    python -m benchmarks.reproductions ldp_gw_metrics [--quick] [--out DIR] …   # as ``fedgraph run``, with the tasks here
    python -m benchmarks.reproductions.claims [PAPER …]                        # what published ε are worth

``register`` makes the tasks and the sections of the report here known to this process, as plugins in folders of one's own are.
"""

from pathlib import Path

HERE = Path(__file__).parent


def register() -> None:
    """Let scenarios name ``graph_metrics`` and ``graph_starts``, and the report find their sections, in this process."""
    from fedgraph import plugins, tasks
    from fedgraph.report import sections

    for package, folder in ((tasks, HERE / "tasks"), (sections, HERE / "sections")):
        if str(folder) not in package.__path__:
            package.__path__.append(str(folder))
    plugins.names.cache_clear()
    plugins.load.cache_clear()

"""Tables and figures of single papers, beside their scenarios: ``python -m benchmarks.reproductions.<name>``."""

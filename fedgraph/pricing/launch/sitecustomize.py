"""Loaded by every Python that ``fedgraph price --run`` starts: the recorder, then the ``sitecustomize`` that this one hides.

This folder stands first on ``PYTHONPATH`` of that command, and nowhere else. The recorder is loaded from its file, so that the
program's interpreter needs no fedgraph of its own.
"""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_folder = os.environ.get("FEDGRAPH_RECORD")
if _folder:
    _spec = importlib.util.spec_from_file_location("_fedgraph_recorder", os.path.join(os.path.dirname(_here), "recorder.py"))
    if _spec is not None and _spec.loader is not None:
        _recorder = importlib.util.module_from_spec(_spec)
        sys.modules["_fedgraph_recorder"] = _recorder
        _spec.loader.exec_module(_recorder)
        _recorder.Recording(_folder).__enter__()
_others = [path for path in sys.path if os.path.abspath(path or ".") != _here]
_next = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _next is not None and _next.loader is not None:
    _next.loader.exec_module(importlib.util.module_from_spec(_next))

"""A cell (one method in one world with one budget and one seed): its name, what it leaves behind, and where that is kept.

``Cell`` names it, ``CellContext`` is what a task may use, ``Result`` what it found, in a file and as a line of a table;
``store`` is the folder of a run, which one process at a time may write. ``task_facts`` holds what each task records beside the
numbers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

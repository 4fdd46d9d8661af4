"""The commands of ``fedgraph``, one file each, found by their names.

A command module defines

    HELP                              one line for ``fedgraph --help``
    configure(parser)                 its options
    run(options) -> int               its exit status; errors are raised, and become one line (``base.guard``)

Modules import what they need inside ``run``, so that ``fedgraph --help`` and ``fedgraph price`` load neither torch nor Ray.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

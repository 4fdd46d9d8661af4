"""The commands of ``fedgraph``, found by the names of their files.

A file defines, for the command of its name,

    HELP                              one line for ``fedgraph --help``
    configure(parser)                 its options
    run(options) -> int               its exit status; errors are raised, and become one line (``base.guard``)

and for another one that stands beside it (``base``) ``HELP_NAME``, ``configure_name`` and ``run_name``.

Modules import what they need inside ``run``, so that ``fedgraph --help`` and ``fedgraph price`` load neither torch nor Ray.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""A proven row becomes a project that runs on Flower or NVIDIA FLARE, with exactly the noise that was proven.

``project`` writes it, ``deployable`` says which rows can be written and with which numbers, and ``site`` is what the written
project uses of fedgraph at its clients and at its server; it turns a plan into text and back, too. ``deployment`` makes an
owner's file from the owner's own tables, and a model of what the server wrote. The rest of a project is
text from ``templates``; all that adds noise is in one file there, ``private_sums.py``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

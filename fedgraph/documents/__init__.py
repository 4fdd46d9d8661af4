"""Strict settings and YAML with places: each fault names file and line, what was found and what is allowed.

``Settings`` is the base of every model of settings, ``SettingsSpec`` an entry of a scenario before its plugin is known.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

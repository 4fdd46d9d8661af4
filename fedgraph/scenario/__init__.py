"""YAML becomes a checked, frozen scenario; and drafts of scenarios for one's own data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

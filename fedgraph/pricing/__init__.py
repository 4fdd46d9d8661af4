"""What does the privacy that is already deployed buy? Recorded runs and existing configurations, priced.

    recorded() -> Recorded                            what private training does, counted while it runs
    run(command, …) -> Quote                          the same, around a command
    price(path, system=None, fix=None) -> Quote       a configuration, read as data; a Python file is only searched
    systems() -> list[str]                            whose configurations are read

A reader is a function of a file of ``readers``, named by its entry of ``catalogue.yaml`` (``readings`` states the
contract). The room knows privacy and no learning: it imports neither torch nor Ray, nor what it records.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

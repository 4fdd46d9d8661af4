from . import experiment as experiment
from . import live as live
from . import probe as probe
from . import run as run
from . import two_worlds as two_worlds
from .console import Console as Console
from .run import Run as Run
from .run import open_run as open_run

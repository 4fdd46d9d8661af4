from .base import CommandParser as CommandParser
from .base import guard as guard
from .base import main as main
from .base import version as version

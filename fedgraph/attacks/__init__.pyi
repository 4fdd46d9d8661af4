from .base import canary_graphs as canary_graphs
from .base import evidence as evidence
from .base import named as named
from .base import whole_run as whole_run

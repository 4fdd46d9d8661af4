from . import canary_graphs as canary_graphs
from . import evidence as evidence
from . import named as named
from . import whole_run as whole_run

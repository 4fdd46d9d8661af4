from . import canary_graphs as canary_graphs
from . import named as named
from . import whole_run as whole_run

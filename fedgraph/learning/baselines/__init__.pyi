from . import fitting as fitting
from . import gap_networks as gap_networks
from . import networks as networks

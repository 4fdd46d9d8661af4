from . import blocks as blocks
from . import edge_mechanisms as edge_mechanisms
from . import likelihood_ratios as likelihood_ratios
from . import local_bits as local_bits
from . import noise as noise
from . import objective_perturbation as objective_perturbation

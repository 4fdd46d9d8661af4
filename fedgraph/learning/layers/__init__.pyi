from . import gcn as gcn
from . import graphsage as graphsage
from . import layouts as layouts
from . import shared_gnn as shared_gnn

from . import base as base
from .base import TaskModels as TaskModels
from .base import TaskOffers as TaskOffers
from .base import load as load
from .base.grid import TaskRowKeys as TaskRowKeys
from .base.grid import TaskRowSelect as TaskRowSelect
from .node_classification import training as training
from .node_classification.settings import Params as Params

from . import base as base
from .base import TaskModels as TaskModels
from .base import TaskOffers as TaskOffers
from .base import TaskRowKeys as TaskRowKeys
from .base import TaskRowSelect as TaskRowSelect
from .base import load as load
from .node_classification import attendance as attendance
from .node_classification.settings import Params as Params

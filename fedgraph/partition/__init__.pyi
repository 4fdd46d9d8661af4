from . import base as base
from .base import PartitionShares as PartitionShares
from .ego import ego_nodes as ego_nodes

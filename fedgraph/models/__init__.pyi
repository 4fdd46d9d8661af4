from . import fit as fit
from . import model_file as model_file
from .model import Model as Model
from .model import load as load
from .model import match_columns as match_columns

from . import descents as descents
from . import public_training as public_training

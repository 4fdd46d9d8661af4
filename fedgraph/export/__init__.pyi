from . import deployment as deployment
from . import project as project
from . import wire as wire

from . import deployment as deployment
from . import owner as owner
from . import project as project
from . import wire as wire

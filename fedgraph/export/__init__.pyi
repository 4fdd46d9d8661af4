from . import project as project

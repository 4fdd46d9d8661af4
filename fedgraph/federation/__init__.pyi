from . import client as client
from . import round_attendance as round_attendance
from . import rounds as rounds
from .messages import ClientJob as ClientJob
from .round_attendance import Participation as Participation
from .rounds import RoundPrefixes as RoundPrefixes
from .rounds import RoundsOutcome as RoundsOutcome

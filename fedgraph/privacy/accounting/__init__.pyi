from . import accountant as accountant
from . import aggregation_noise as aggregation_noise
from . import amplification as amplification
from . import calibrate as calibrate
from . import gaussian as gaussian
from . import rdp as rdp
from . import selection as selection

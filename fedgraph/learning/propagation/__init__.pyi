from . import aggregation as aggregation
from . import mean_field as mean_field
from . import meetings as meetings
from . import walks as walks

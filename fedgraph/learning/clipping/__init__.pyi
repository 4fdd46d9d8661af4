from . import aggregated_rows as aggregated_rows
from . import neighbour_rows as neighbour_rows
from . import per_sample as per_sample

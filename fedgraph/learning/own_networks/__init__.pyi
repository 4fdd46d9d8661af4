from . import example_gradients as example_gradients
from . import isolation as isolation
from . import own_network as own_network
from . import rooted as rooted

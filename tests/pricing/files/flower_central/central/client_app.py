"""A client that clips, under secure aggregation."""

from flwr.clientapp import ClientApp
from flwr.clientapp.mod import fixedclipping_mod, secaggplus_mod

app = ClientApp(mods=[secaggplus_mod, fixedclipping_mod])

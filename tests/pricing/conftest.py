"""The files here are read as data by the readers under test; pytest must not import them."""

collect_ignore_glob = ["files/*"]

"""Parts of the protocol on the bench of ``audit.bench``, one file per family, each sound part followed by its broken twins.

    streams    the noise of one client and round beside that of other clients, rounds and plans, under a secret seed
    gradients  sums of clipped gradients whose rows read neighbours

A file is found by being here; it offers ``cases() -> Iterator[BenchCase]``. The shipped code is broken
(``streams.break_streams``).
"""

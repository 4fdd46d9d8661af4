"""One thread per process: parallelism comes from actors, and sums do not depend on the machine's cores."""

import os
import sys

import threadpoolctl


def use_one_thread() -> None:
    """Limit torch and the BLAS of this process to one thread. A torch that is imported later reads the variable itself."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)

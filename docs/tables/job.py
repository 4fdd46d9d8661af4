"""Two sites, two rounds, FLARE's own federated averaging, in its simulator."""

import os

from nvflare.app_opt.pt.job_config.fed_avg import FedAvgJob
from nvflare.job_config.script_runner import ScriptRunner
from train import Net

if __name__ == "__main__":
    job = FedAvgJob(name="tables", n_clients=2, num_rounds=2, initial_model=Net())
    for site in ("site-1", "site-2"):
        job.to(ScriptRunner(script="train.py", script_args=os.path.abspath("people")), site)
    job.simulator_run("workspace", gpu="")

"""A training on a table with Opacus, as FLARE's ``ScriptRunner`` runs it at each site: nothing in it knows of fedgraph."""

import csv
import sys

import nvflare.client as flare
import torch
from opacus import PrivacyEngine


class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(2, 3))


def table(folder, site):
    """The rows of one site: every second person."""
    with open(f"{folder}/features.csv") as file:
        rows = [[float(row["age"]) / 100, float(row["member"])] for row in csv.DictReader(file)]
    with open(f"{folder}/labels.csv") as file:
        classes = [("low", "mid", "high").index(row["label"]) for row in csv.DictReader(file)]
    mine = slice(int(site.rpartition("-")[2]) - 1, None, 2)
    return torch.utils.data.TensorDataset(torch.tensor(rows[mine]), torch.tensor(classes[mine]))


def main():
    flare.init()
    data, engine = table(sys.argv[1], flare.get_site_name()), PrivacyEngine()
    while flare.is_running():
        got = flare.receive()
        if got is None:
            break
        model = Net()
        model.load_state_dict({name: torch.as_tensor(held) for name, held in got.params.items()})
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=torch.utils.data.DataLoader(data, batch_size=30),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
        for rows, classes in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(rows), classes).backward()
            optimizer.step()
        print("Opacus: epsilon", engine.get_epsilon(1e-5))
        flare.send(flare.FLModel(params={name: held.cpu() for name, held in model.state_dict().items()}))


if __name__ == "__main__":
    main()

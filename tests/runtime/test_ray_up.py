"""``ray up``, ``ray job submit``, ``ray rsync-down``, ``ray down`` with ``ray_cluster_onprem.yaml``, over SSH on the loopback.

One machine stands for two: an SSH server of the test's own (host key, user key, free port) answers at 127.0.0.1, the head, and
at 127.0.0.2, the worker. What differs from the shipped file: addresses, ports, one CPU each, the home folder, and packages,
which are there already. Ray's own ``ray stop`` ends every Ray process of a machine, also those of other runs, so the machine's
``ray`` has another one: it ends what this test started, and at the worker nothing, since the head is the same machine.
"""

from __future__ import annotations

import getpass
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAD, WORKER = "127.0.0.1", "127.0.0.2"
PROGRAMS = ("ssh", "rsync", "ssh-keygen")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
MISSING = [name for name in PROGRAMS if not shutil.which(name)] + ([] if SSHD else ["sshd"])
TINY = """\
name: tiny
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [1]
    trust: [own-client]
    partition: {partition: uniform, clients: 4}
    methods: [{method: features, steps: 3, projection: 16}]
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HEAD, 0))
        return int(sock.getsockname()[1])


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def of_ray(folder: Path) -> list[int]:
    """Processes that name Ray's temporary folder of this test."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{folder}/" in (process / "cmdline").read_text(encoding="utf-8", errors="replace"):
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


@dataclass(frozen=True)
class Laptop:
    """What `ray up` is called with: folders, ports and the environment of the machine that calls it."""

    folder: Path
    ray: Path  # Ray's own folder on the two machines; short, because sockets lie in it
    ssh_port: int
    head_port: int
    dashboard: int
    env: dict[str, str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def call(self, line: str, seconds: int = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            line, shell=True, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )

    def shipped(self) -> Path:
        """The shipped file for these two machines; every replacement must find what it replaces."""
        text = (ROOT / "ray_cluster_onprem.yaml").read_text(encoding="utf-8")
        for old, new in {
            "cluster_name: fedgraph": f"cluster_name: {self.ray.name}",
            "192.0.2.10": HEAD,
            "    - 192.0.2.11\n    - 192.0.2.12\n": f"    - {WORKER}\n",
            "ssh_user: ubuntu": f"ssh_user: {getpass.getuser()}",
            "~/.ssh/id_ed25519": str(self.folder / "user_key"),
            "  - python3 -m venv /home/ubuntu/venv\n": "",
            "  - pip install --quiet -c /home/ubuntu/fedgraph/constraints.txt '/home/ubuntu/fedgraph[cluster]'\n": "",
            "/home/ubuntu": str(self.home),
            "--port=6379": f"--port={self.head_port} --dashboard-port={self.dashboard} --num-cpus=1",
            "--address=$RAY_HEAD_IP:6379": f"--address=$RAY_HEAD_IP:{self.head_port} --num-cpus=1 --temp-dir={self.ray}/2",
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        path = self.folder / "cluster.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def documented(self, start: str) -> str:
        """The first line of docs/cluster.md that begins so, for these machines."""
        text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
        line: str = re.findall(rf"^{start}.*$", text, re.M)[0]
        line = line.replace("ray_cluster_onprem.yaml", str(self.folder / "cluster.yaml"))
        return line.replace("http://localhost:8265", f"http://{HEAD}:{self.dashboard}").replace("/home/ubuntu", str(self.home))


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """Keys, an SSH server whose sessions have a home of their own, and `ssh` with its port."""
    ray = Path(tempfile.mkdtemp(prefix="fg", dir="/tmp"))
    port = free_port()
    for name in ("user_key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    python, bin_of_machine = sys.executable, tmp_path / "home" / "venv" / "bin"
    script(bin_of_machine / "python", f'exec {python} "$@"')
    ssh = f"exec {shutil.which('ssh')} -p {port}"
    script(tmp_path / "bin" / "ssh", f'{ssh} "$@"')
    key = "ray_bootstrap_key.pem"  # the copy at the head; ssh itself reads ~ as the home of the login, not as $HOME
    script(bin_of_machine / "ssh", f'{ssh} "${{@/#\\~\\/{key}/$HOME/{key}}}"')
    run_ray = f'exec {python} -m ray.scripts.scripts "$@"'
    ended = f"case $FEDGRAPH_MACHINE in {HEAD}) pkill -KILL -f {ray}/ ;; esac; echo Stopped; exit 0"
    script(bin_of_machine / "ray", f'if [ "$1" = stop ]; then {ended}; fi; {run_ray}')
    script(tmp_path / "bin" / "ray", run_ray)
    own = f"export HOME={tmp_path}/home RAY_TMPDIR={ray} RAY_USAGE_STATS_ENABLED=0"
    address = "export FEDGRAPH_MACHINE=$(echo $SSH_CONNECTION | cut -d' ' -f3)"
    script(tmp_path / "session", f'{own}; {address}; cd; exec bash -c "$SSH_ORIGINAL_COMMAND"')
    (tmp_path / "home" / ".bashrc").touch()
    options = {
        "Port": port, "PidFile": "none", "UsePAM": "no", "StrictModes": "no", "AuthorizedKeysFile": tmp_path / "user_key.pub",
        "ForceCommand": tmp_path / "session",
    }  # fmt: skip
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd of root separates its privileges
    words = [f"-o{key}={value}" for key, value in options.items()] + [f"-oListenAddress={ip}" for ip in (HEAD, WORKER)]
    log = (tmp_path / "sshd.log").open("w", encoding="utf-8")
    server = subprocess.Popen([str(SSHD), "-D", "-e", "-f", "/dev/null", "-h", str(tmp_path / "host_key"), *words], stderr=log)
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    env |= {"HOME": str(tmp_path / "laptop"), "PATH": f"{tmp_path}/bin:{Path(python).parent}:{env['PATH']}"}
    env |= {"RAY_TMPDIR": str(tmp_path / "laptop"), "RAY_USAGE_STATS_ENABLED": "0"}
    (tmp_path / "laptop").mkdir()
    try:
        yield Laptop(tmp_path, ray, port, free_port(), free_port(), env)
    finally:
        for pid in of_ray(ray):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.terminate()
        server.wait()
        log.close()
        shutil.rmtree(ray, ignore_errors=True)


@pytest.mark.ray("own")
@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"ray up needs {', '.join(MISSING)} on this machine")
@pytest.mark.skipif(importlib.util.find_spec("aiohttp_cors") is None, reason="ray job submit needs ray[default]: [cluster]")
def test_ray_up_submit_and_down(laptop: Laptop) -> None:
    key = f"-i {laptop.folder}/user_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes"
    time.sleep(1)
    if laptop.call(f"ssh {key} {getpass.getuser()}@{HEAD} true").returncode:
        said = (laptop.folder / "sshd.log").read_text(encoding="utf-8")
        pytest.skip(f"this user may not log in over SSH here: {said[-200:]}")
    cluster = laptop.shipped()
    assert laptop.call(laptop.documented("ray get-auth-token")).returncode == 0
    up = laptop.call(laptop.documented("ray up") + " -y", 600)
    assert up.returncode == 0, up.stdout[-3000:] + up.stderr[-3000:]
    status = f"ray exec {cluster} 'RAY_AUTH_MODE=token ray status'"
    until = time.monotonic() + 300
    while "/2.0 CPU" not in (found := laptop.call(status)).stdout:
        assert time.monotonic() < until, found.stdout[-3000:] + found.stderr[-1000:]
        time.sleep(3)
    tiny = laptop.folder / "tiny.yaml"
    tiny.write_text(TINY, encoding="utf-8")
    line = laptop.documented("RAY_AUTH_MODE=token ray job submit").replace(
        "scenarios/citeseer.yaml", f"{tiny} --set runtime.workers=2"
    )
    until = time.monotonic() + 90
    while "No available agent" in (done := laptop.call(line, 500)).stderr and time.monotonic() < until:
        time.sleep(3)  # the head's agent starts after its raylet
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    home = laptop.folder / "brought"
    brought = laptop.call(re.sub(r" runs/$", f" {home}/", laptop.documented("ray rsync-down")))
    assert brought.returncode == 0, brought.stdout[-2000:]
    facts = json.loads((home / "citeseer" / "environment.json").read_text(encoding="utf-8"))["runtime"]
    assert (facts["workers"], facts["nodes"]) == (2, 2)
    down = laptop.call(laptop.documented("ray down") + " -y")
    assert down.returncode == 0
    assert "command not found" not in down.stdout + down.stderr  # Ray itself says nothing and reports success
    assert not of_ray(laptop.ray)

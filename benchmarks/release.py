"""The files of a release: wheel and source distribution of fedgraph-privacy and of fedgraph-zoo, and their SHA-256.

    python -m benchmarks.release dist

What git tracks at HEAD is copied and built there, so nothing that lies about gets in; changes that are not committed are
refused. Needs git and setuptools. ``.github/workflows/release.yml`` runs it.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# the folder is read first: setuptools leaves arguments of its own in sys.argv
_BUILD = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"


def build(out: Path) -> list[Path]:
    """Writes the four files and ``SHA256SUMS`` into a folder that has none; returns them.

    Raises:
        SystemExit: the folder has files, changes are not committed, or a file was not made.
    """
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"{out} is not empty; name another folder")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        raise SystemExit(f"not committed: {changed.splitlines()[0][3:]}; a release is built from what is committed")
    out.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tracked:
            tracked.extractall(folder, filter="data")
        made = packed(Path(folder), out)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return [*made, out / "SHA256SUMS"]


def packed(source: Path, out: Path) -> list[Path]:
    """Wheel and source distribution of both projects in a checkout, sorted.

    Raises:
        SystemExit: other than four files are there then.
    """
    for project in (source, source / "zoo"):
        subprocess.run([sys.executable, "-c", _BUILD, str(out.resolve())], cwd=project, check=True, stdout=subprocess.DEVNULL)
    made = sorted(path for path in out.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    if len(made) != 4:
        raise SystemExit(f"{len(made)} files were made in {out}; allowed: 4, a wheel and a source distribution of each project")
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("python -m benchmarks.release FOLDER")
    for path in build(Path(sys.argv[1])):
        print(path)

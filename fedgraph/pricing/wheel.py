"""The wheel of this very fedgraph, made of the files that are installed: an exported project carries it, for no index has it.

It holds the same wherever the same files are installed, so a project's wheel is compared with one's own.
"""

import base64
import hashlib
import importlib.metadata
import io
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path

from fedgraph.errors import PricingError

_DISTRIBUTION = "fedgraph-privacy"
_LEFT_OUT = ("__pycache__", ".pyc", ".nbi", ".nbc")
_END = 22  # bytes of the last record of a ZIP file without a comment
_TAGS = "Wheel-Version: 1.0\nGenerator: fedgraph\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_COMMANDS = "[console_scripts]\nfedgraph = fedgraph.commands.base:main\n"


@lru_cache(maxsize=1)
def own_wheel() -> tuple[str, bytes]:
    """(name of the file, its bytes). ``PricingError`` where fedgraph is not installed by name."""
    try:
        told = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise PricingError(f"{_DISTRIBUTION} is not installed by name, so no wheel of it can be made: pip install .") from error
    home = Path(__file__).parents[1]
    files = {f"fedgraph/{p.relative_to(home).as_posix()}": p.read_bytes() for p in home.rglob("*") if _belongs(p)}
    beside = home.parent / "scenarios"  # of a checkout; installed, they are inside
    if not (home / "scenarios").is_dir() and beside.is_dir():
        files |= {f"fedgraph/scenarios/{p.name}": p.read_bytes() for p in beside.iterdir() if _belongs(p)}
    stem = f"{_DISTRIBUTION.replace('-', '_')}-{told.version}"
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = (told.read_text("METADATA") or "").encode()
    files[f"{info}/WHEEL"], files[f"{info}/entry_points.txt"] = _TAGS.encode(), _COMMANDS.encode()
    hashes = {name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=") for name, content in files.items()}
    record = "".join(f"{name},sha256={hashes[name].decode()},{len(files[name])}\n" for name in sorted(files))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            one = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            one.compress_type, one.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(one, files[name])
    return f"{stem}-py3-none-any.whl", made.getvalue()


def same_wheel(path: Path, content: bytes) -> bool:
    """Whether a file holds the same files as the wheel ``content``, each once; how they are packed may differ."""
    given, found = path.read_bytes(), []
    if given == content:
        return True
    for packed in (given, content):
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                told = archive.infolist()
                bare = told[0].header_offset == 0 and packed[-_END:].startswith(b"PK\5\6")  # nothing before or behind it
                found.append((bare, sorted((one.filename, archive.read(one)) for one in told)))
        except (zipfile.BadZipFile, OSError, ValueError, IndexError, NotImplementedError, zlib.error):
            return False
    return found[0] == found[1]


def _belongs(path: Path) -> bool:
    return path.is_file() and not any(part.endswith(_LEFT_OUT) for part in path.parts)

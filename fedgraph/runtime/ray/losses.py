"""What Ray says of a call that gave no value: whether it is lost, in a line, or is an error of what was called."""

from ray.exceptions import (
    GetTimeoutError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from fedgraph.errors import RuntimeFailure

_LOST = (RayActorError, ObjectLostError, WorkerCrashedError, OutOfMemoryError, GetTimeoutError)


class Deadly(RuntimeFailure):
    """A call that kills whoever computes it."""


def raise_own(error: RayError) -> None:
    """Raise what is no loss: the function's own error, or a full store."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
        raise RuntimeFailure(f"Ray's object store is full: {in_a_line(error)}") from None
    if isinstance(error, RayTaskError) or not isinstance(error, _LOST):
        raise RuntimeFailure(f"{type(error).__name__}: {in_a_line(error)}") from None


def in_a_line(error: BaseException) -> str:
    """The last words of what Ray says, without its pages of advice."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]

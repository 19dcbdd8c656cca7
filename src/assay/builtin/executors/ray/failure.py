"""Says in one line what a failed call on a node means for the user, and whether another attempt has a point."""

from __future__ import annotations


def describe_failure(error: Exception) -> str:
    """What a failed call of an actor means for the user, in one line."""
    import ray

    if isinstance(error, ray.exceptions.GetTimeoutError):
        return "it did not answer in time"
    if isinstance(error, ray.exceptions.ObjectStoreFullError | ray.exceptions.OutOfDiskError):
        return "the object store of the node is full"
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    if isinstance(cause, ModuleNotFoundError) or "ModuleNotFoundError" in str(cause):
        return "a package is missing there: install Assay with the same extras on every node"
    if isinstance(cause, ray.exceptions.RayActorError):
        return "its actor died" if "node" not in str(cause).lower() else "the node or its actor died"
    return next(iter(str(cause).strip().splitlines()), type(cause).__name__)


def is_permanent(error: Exception) -> bool:
    """Whether a node failed to start because of its software, which another attempt would find as it is.

    An actor that died or was slow is none of that, nor is a file that could not be written.
    """
    import ray

    if "ModuleNotFoundError" in str(error):
        return True
    return isinstance(error, ray.exceptions.RayTaskError) and not isinstance(
        error.cause, OSError | MemoryError
    )

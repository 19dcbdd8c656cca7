"""The connection to a Ray cluster: one that runs somewhere, or one that is started here for as long as it is needed.

Ray tells much on the terminal, reports its use to its makers and waits a long time for an address that does not answer. Here it is quiet,
reports nothing, and an address that cannot work is an error within seconds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay.builtin.executors.ray.process_settings import OWN_CLUSTER
from assay.errors import PlanError
from assay.execute.guardian import remove_folder
from assay.model import ResourceRequest

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer."""
_STORE_BYTES = 256 * 2**20
"""Object store of a cluster that is started here: it holds the package of files and little else."""
_LONGEST_FOLDER = 40
"""Ray puts sockets into its temporary folder, and the path of a socket has at most 107 characters."""
_SETTINGS = b"\x04"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + bytes(5)
"""What a client of HTTP/2 sends first, with an empty frame of settings; a server's first frame is one of settings too (RFC 9113, section 3.4)."""
_TOKEN_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_PREFIX = "assay-ray-"
_OWNER = "owner"
"""A file that the process that started a cluster keeps locked: the folder of one that was killed is known by that."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Patch releases of Python understand each other; Ray would refuse them.
    "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL": "minor",
    **OWN_CLUSTER,
}


class HeadUnreachable(PlanError):
    """The head of the cluster does not respond: it ended, or the network is down."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster, as Ray knows it."""

    id: str
    name: str
    """The address of the machine; a number follows where several nodes of the cluster share an address."""
    slots: int
    """How many workers it takes at a time: its CPUs, as it was started with."""
    resources: Mapping[str, float]

    def has(self, needs: Mapping[str, float]) -> bool:
        return all(self.resources.get(name, 0.0) >= amount for name, amount in needs.items())


def place_on(node: Node) -> dict[str, Any]:
    """Options of Ray that keep an actor or a task on the node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False)}


def count_needs(resources: ResourceRequest | None) -> dict[str, float]:
    """What a job takes of its node, in Ray's names; one CPU where it asks for nothing."""
    request = resources or ResourceRequest()
    return {"CPU": request.cpu, "GPU": request.gpu, **request.custom}


class Cluster:
    """A connection to a cluster; `connect` makes it, and `close` gives it up."""

    def __init__(
        self, address: str, folder: str = "", is_owner: bool = True, variables: Sequence[str] = ()
    ) -> None:
        self.address = address
        self._folder = folder
        self._is_owner = is_owner
        self._variables = variables
        """Environment variables that were set for this cluster only."""
        self._names: dict[str, str] = {}
        self._head = ""
        """The address of its head, as Ray knows it."""

    @property
    def is_started_here(self) -> bool:
        """Whether the cluster exists only for this program and ends with `close`."""
        return bool(self._folder)

    def nodes(self) -> list[Node]:
        """The nodes that are alive; a node keeps its name as long as this connection lasts.

        HeadUnreachable at once where the head does not respond: Ray itself would wait for a minute, and end this process.
        """
        import ray

        try:
            if not self._head:
                self._head = str(ray.get_runtime_context().gcs_address)
            _connect_to(self._head)
            found = [node for node in ray.nodes() if node["Alive"]]
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
            raise HeadUnreachable(
                f"the head of the Ray cluster at {self._head} does not respond ({reason})"
            ) from None
        # The head first: where nodes share an address, it is the one without a number.
        found.sort(key=lambda node: ("node:__internal_head__" not in node["Resources"], str(node["NodeID"])))
        return [self._describe_node(node) for node in found]

    def _describe_node(self, node: Mapping[str, Any]) -> Node:
        key, address = str(node["NodeID"]), str(node["NodeManagerAddress"])
        if key not in self._names:
            taken = set(self._names.values())
            others = (f"{address}-{number}" for number in range(2, len(taken) + 3))
            self._names[key] = next(name for name in (address, *others) if name not in taken)
        return Node(key, self._names[key], int(node["Resources"].get("CPU", 0)), node["Resources"])

    def disconnect(self) -> None:
        import ray

        if self._is_owner and ray.is_initialized():
            if self._head and not self.is_started_here:
                _stop_listening_to_hung_head(self._head)
            ray.shutdown()

    def close(self) -> None:
        """End the connection, and the cluster too if it was started here; nothing of it is left."""
        self.disconnect()
        for name in self._variables:
            os.environ.pop(name, None)
        if self._folder:
            remove_folder(self._folder)
        _unlock(self._folder)


def connect(address: str | None, *, cpus: int | None = None) -> Cluster:
    """Connect to the cluster at `host:port`, or start one on this machine, with as many CPUs as given or as it has.

    PlanError where no cluster answers, where Ray or Python are of a different version there, and where no cluster can be started. A program
    that is connected already keeps its connection.
    """
    os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
    if address:
        # Once a second: somebody is known to listen there before Ray tries.
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", str(round(CONNECT_SECONDS)))
    import ray

    if ray.is_initialized():
        connected = str(ray.get_runtime_context().gcs_address)
        if address and not _is_same_address(address, connected):
            raise PlanError(
                f"This program is connected to the Ray cluster at '{connected}', and cannot use the one at '{address}' as well. "
                "Disconnect first (ray.shutdown()), or leave the address out."
            )
        return Cluster(connected, is_owner=False)
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Ray stores the command line of a driver where everybody with access to the cluster reads it; it may hold the password of a database.
    with _keep_signal_handlers(), _replace_in_ray("get_entrypoint_name", lambda: "assay"):
        return _join_cluster(address) if address else _start_cluster(cpus)


def _join_cluster(address: str) -> Cluster:
    import ray

    _check_answers(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except Exception as error:
        ray.shutdown()
        raise PlanError(_explain_failure(address, error)) from None
    except BaseException:
        ray.shutdown()
        raise
    return Cluster(address)


def _is_same_address(address: str, connected: str) -> bool:
    """Whether both are the same port of the same host, whose name may be written in a different way."""
    (host, _, port), (known_host, _, known_port) = address.rpartition(":"), connected.rpartition(":")
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        found = {host}
    is_here = any(place.startswith("127.") for place in found) and _is_own_address(known_host)
    return port == known_port and (known_host.strip("[]") in found or is_here)


def _is_own_address(host: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as attempt:
        try:
            attempt.bind((host.strip("[]"), 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _replace_in_ray(name: str, function: Callable[..., object]) -> Iterator[None]:
    """For what Ray has no setting; where a different version of it has no such function, Ray does as it is documented."""
    from ray._private import utils

    original = getattr(utils, name, None)
    if original is None:
        yield
        return
    setattr(utils, name, function)
    try:
        yield
    finally:
        setattr(utils, name, original)


def _check_answers(address: str) -> None:
    """Fail at once if nothing listens at the address: Ray itself would wait for minutes."""
    if address.startswith("ray://"):
        raise PlanError(
            f"'{address}' is the address of a Ray client, which cannot place work on chosen nodes. "
            "Start Assay on a machine of the cluster, and give HOST:6379, the address that 'ray start --head' printed."
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        raise PlanError(
            f"'{address}' is not the address of a Ray cluster. Write HOST:PORT, as in 10.0.0.1:6379."
        )
    try:
        _connect_to(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanError(
            f"No Ray cluster responds at '{address}': {reason}. Start one there: ray start --head"
        ) from None


def _connect_to(address: str) -> None:
    """OSError where nothing listens, or where what listens does not begin to speak HTTP/2, as the head of a cluster does at once."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as connection:
        if os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true"):
            return
        connection.sendall(_PREFACE)
        frame = connection.recv(9)
    if frame[3:4] != _SETTINGS:
        raise ConnectionError(errno.EPROTO, "what listens there is not the head of a Ray cluster")


def _stop_listening_to_hung_head(address: str) -> None:
    """Where the head accepts connections but answers nothing, Ray would wait without end for its subscriptions to be cancelled."""
    from ray._private import worker

    try:
        _connect_to(address)
    except TimeoutError:
        # The listeners hold this event and end at it, should the head ever answer; those of the next connection get another.
        worker.global_worker.threads_stopped.set()
        worker.global_worker.threads_stopped = threading.Event()
        for name in ("gcs_error_subscriber", "gcs_log_subscriber", "listener_thread", "logger_thread"):
            if hasattr(worker.global_worker, name):
                delattr(worker.global_worker, name)
    except OSError:
        pass  # a head that has ended blocks no one


def _explain_failure(address: str, error: Exception) -> str:
    text = str(error)
    if "Version mismatch" in text:
        facts = " ".join(text.partition("Version mismatch:")[2].split())
        return (
            f"The Ray cluster at '{address}' runs a different version of Ray or Python. {facts} "
            "Install the same versions here and on every node."
        )
    if "InvalidAuthToken" in f"{text} {error.__cause__}":
        return (
            f"The Ray cluster at '{address}' requires a token. Set RAY_AUTH_MODE=token, and provide the token of the cluster "
            "as Ray expects it: in ~/.ray/auth_token, or in the file that RAY_AUTH_TOKEN_PATH names."
        )
    first = next(iter(text.strip().splitlines()), type(error).__name__)
    return f"The Ray cluster at '{address}' cannot be joined: {first}"


def _start_cluster(cpus: int | None) -> Cluster:
    import ray

    root = Path(tempfile.gettempdir())
    root = root if len(str(root)) <= _LONGEST_FOLDER else Path("/tmp")  # noqa: S108
    remove_abandoned_folders(root)
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=root)
    variables: tuple[str, ...] = ()
    try:
        _lock(folder)
        variables = _protect(folder)
        ray.init(
            address="local",
            num_cpus=cpus or len(os.sched_getaffinity(0)),
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            _temp_dir=folder,
            _system_config={"enable_metrics_collection": False},
        )
    except BaseException as error:
        ray.shutdown()
        Cluster("local", folder, is_owner=False, variables=variables).close()
        if not isinstance(error, Exception):
            raise
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise PlanError(f"Ray cannot start a cluster on this machine: {first}") from None
    return Cluster("local", folder, variables=variables)


_locks: dict[str, int] = {}
"""Folders of clusters that this process has started, and the open file that it keeps locked."""


def _lock(folder: str) -> None:
    # It gets its name once it is locked: no other run must take the folder for abandoned in between.
    new = Path(folder, f"{_OWNER}.new")
    _locks[folder] = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(_locks[folder], fcntl.LOCK_EX)
    new.rename(Path(folder, _OWNER))


def _unlock(folder: str) -> None:
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)


def remove_abandoned_folders(root: Path) -> None:
    """Remove what clusters have left whose driver was killed: logs, and the file with their token."""
    for folder in root.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            is_own = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if not is_own or not (folder / _OWNER).is_file():
                continue
            with (folder / _OWNER).open() as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(str(folder))


@cache
def _make_token() -> str:
    """One for each process, since Ray reads a token once and keeps it."""
    return secrets.token_hex(32)


def _protect(folder: str) -> tuple[str, ...]:
    """Give the cluster a token of its own, unless the user has decided about tokens; returns the variables set for it.

    Where Ray finds no token, it writes one into the home folder, and that changes how all later clusters of this machine start.
    """
    if any(name in os.environ for name in _TOKEN_VARIABLES):
        return ()
    file = Path(folder, "token")
    file.touch(mode=0o600)
    file.write_text(_make_token(), encoding="ascii")
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(file)
    # Ray sets the mode itself when it finds the token.
    return ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")


@contextlib.contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Keep our signal handlers: Ray installs its own, but Ctrl-C and SIGTERM must still reach the run, also while Ray connects."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        with _replace_in_ray("set_sigterm_handler", lambda handler: None):
            yield
    finally:
        with contextlib.suppress(ValueError):  # not in the main thread, where Ray cannot have changed them
            for number, handler in before.items():
                signal.signal(number, handler)

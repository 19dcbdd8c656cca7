"""What the executor `ray` does on one machine, without a cluster: the files it sends, the actor's workers, what it leaves behind."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from tests.execute.carrying import trial
from tests.execute.test_jobs import plan_of
from tests.execute.test_shares import build_job

from assay.builtin.executors.local import JobResult, WorkerPool
from assay.builtin.executors.ray import cluster, load_sites, node, package
from assay.builtin.executors.ray.gpu_devices import GpuDevices
from assay.builtin.executors.ray.node import NodeOrder, NodeWorker
from assay.builtin.executors.ray.package import pack_plan
from assay.builtin.executors.ray.process_settings import undo_changes
from assay.builtin.executors.ray.software import find_versions
from assay.errors import PlanError
from assay.execute import guardian
from assay.execute.wire import decode_batches, encode_order
from assay.model import AgentUse, Artifact, Batch, Execution, ResourceRequest, ScorerUse
from assay.model.redaction import Redaction, known_secrets
from assay.testing.samples import sample_job

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
SECRET = "hunter-2-and-so-on-7341"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a plan needs, with a file in it."""
    monkeypatch.setattr(package, "_find_roots", lambda plan, working: [str(tmp_path)])
    (tmp_path / "agents.py").write_text("x = 1")
    return tmp_path


def list_packed() -> set[str]:
    content = pack_plan(plan_of([trial("noop")], 1)).content
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {Path(name).name for name in archive.getnames()}


def test_files_for_secrets_are_not_sent(folder: Path) -> None:
    for name in ("assay.toml", ".env", ".env.local", "server.pem", "server.KEY"):
        (folder / name).write_text("x")
    (folder / "environment.toml").write_text("x")

    assert list_packed() == {"agents.py", "environment.toml"}


def test_a_file_that_holds_a_known_secret_is_refused_with_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "settings.py").write_text(f"key = '{SECRET}'")
    assert "settings.py" in list_packed()

    known_secrets().learn(SECRET, "KEEN_TOKEN")
    with pytest.raises(PlanError, match=r"settings\.py.*'KEEN_TOKEN'") as refused:
        list_packed()
    assert SECRET not in str(refused.value)


def test_more_files_than_nodes_are_sent_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "large").mkdir()
    (folder / "large" / "data").write_bytes(bytes(100))
    monkeypatch.setattr(package, "MOST_BYTES", 105)
    assert list_packed() == {"agents.py", "data"}

    monkeypatch.setattr(package, "MOST_BYTES", 104)
    with pytest.raises(PlanError, match=str(folder)):
        list_packed()


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeWorker]:
    """The actor within this process, with two GPUs."""
    monkeypatch.setattr(node, "undo_changes", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.chdir(tmp_path)
    made = NodeWorker(2)
    yield made
    made.stop(is_graceful=False)
    made._guardian.close()


def order(number: int, measured: int = 3, resources: ResourceRequest | None = None) -> NodeOrder:
    job = replace(sample_job(Path("x"), measured=measured), resources=resources)
    return NodeOrder(number, 0, b"".join(encode_order(job, "")))


def test_a_node_keeps_a_bounded_number_of_bytes_until_they_are_collected(
    worker: NodeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "MOST_WAITING", 1)
    batches = [[(1, b"x" * 10)], [(1, b"y" * 10)]]
    kept: list[Any] = []

    class Pool:
        numbers: tuple[int, ...] = ()

    def keep() -> None:
        for lines in batches:
            kept.append(lines)
            worker._keep(Pool(), iter(()), [])  # type: ignore[arg-type]

    monkeypatch.setattr(node, "_encode", lambda _: kept[-1])
    worker._thread = Thread(target=keep, daemon=True)
    worker._thread.start()
    first = worker.collect(5.0)
    second = worker.collect(5.0)

    assert (first.lines, second.lines) == (batches[0], batches[1])


def test_a_node_whose_supervisor_fails_says_so_and_leaves_no_files(
    worker: NodeWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no more processes")

    monkeypatch.setattr(WorkerPool, "start_job", fail)
    worker._thread.start()
    worker.start("assay.execute.attempt:attempt", [order(1)])
    results = worker.collect(30.0)

    assert results.problem == "RuntimeError: no more processes"
    assert not list(tmp_path.glob("assay-node-*"))


def test_jobs_that_ask_for_a_gpu_have_one_each(worker: NodeWorker) -> None:
    one = replace(sample_job(Path("x")), resources=ResourceRequest(gpu=1.0))
    seen = [worker._move_job(one, number, after).gpus for number, after in ((1, 0), (2, 0), (3, 1))]
    assert seen == [("0",), ("1",), ("0",)]

    # The first one's devices are still in use by the job that takes over its slots.
    worker._devices.release(1)
    assert worker._devices._free == {"0": 0.0, "1": 0.0}
    worker._devices.release(3)
    assert worker._move_job(one, 4, 0).gpus == ("0",)
    assert worker._move_job(sample_job(Path("x")), 5, 0).gpus == ()


def test_a_node_gives_its_devices_back_when_a_job_is_done(worker: NodeWorker) -> None:
    worker._thread.start()
    worker.start("assay.execute.attempt:attempt", [order(1, resources=ResourceRequest(gpu=2.0))])
    executions: list[Execution] = []
    done: list[int] = []
    while not done:
        results = worker.collect(10.0)
        done += results.done
        for _, lines in results.lines:
            executions += [e for batch in decode_batches(lines.splitlines()) for e in batch.executions]

    assert (len(executions), done) == (3, [1])
    assert worker._devices._free == {"0": 1.0, "1": 1.0}


def collect_all(worker: NodeWorker) -> list[Batch]:
    batches: list[Batch] = []
    done: list[int] = []
    while not done:
        results = worker.collect(10.0)
        done += results.done
        for _, lines in results.lines:
            batches += decode_batches(lines.splitlines())
    return batches


def test_a_secret_that_only_the_node_has_does_not_leave_it(
    worker: NodeWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver, which does not know it, would store it."""
    monkeypatch.setenv("NODE_ONLY_TOKEN", SECRET)
    (tmp_path / "agents.py").write_text(
        "import os, sys\n\ndef tell(question):\n    secret = os.environ['NODE_ONLY_TOKEN']\n    print(secret)\n"
        "    if question == '1':\n        raise ValueError(secret)\n    return {secret: [question, secret]}\n"
    )
    agent = AgentUse("teller", "python", {"target": "agents.py:tell"}, folder=str(tmp_path))
    job = replace(build_job(2), agent=agent, scorers=(ScorerUse("exact"),))
    worker.prepare(find_versions(), b"", package.Layout(working=str(tmp_path)), {})
    worker.start("assay.execute.attempt:attempt", [NodeOrder(1, 0, b"".join(encode_order(job, "")))])
    batches = collect_all(worker)
    answered, failed = (execution for batch in batches for execution in batch.executions)

    assert answered.output == {"[redacted]": ["0", "[redacted]"]}
    assert "[redacted]" in str(failed.error)
    assert "[redacted]" in str(failed.log)
    assert SECRET not in repr(batches)


def test_files_that_a_node_hands_over_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "known_secrets", lambda: Redaction([SECRET]))
    artifact = Artifact(0, "samples.txt", "samples", f"\xff key={SECRET}".encode("latin-1"))
    ((_, lines),) = node._encode([JobResult(1, Batch(artifacts=(artifact,), stopped={0: SECRET}))])
    (batch,) = decode_batches(lines.splitlines())

    assert batch.artifacts[0].content == b"\xff key=[redacted]"
    assert batch.stopped == {0: "[redacted]"}


def test_jobs_that_ask_for_a_part_of_a_gpu_share_one() -> None:
    devices = GpuDevices(["4", "6"])

    assert [devices.take(number, 0.5) for number in range(3)] == [("4",), ("4",), ("6",)]
    assert devices.take(4, 2) == ("4", "6"), "no room: the job sees all"


def test_what_ray_sets_is_undone_and_what_the_user_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(runtime_env={"env_vars": {"OMP_NUM_THREADS": "7"}})
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    undo_changes()

    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_the_guardian_removes_folders_that_nobody_may_write_to() -> None:
    """Only root can without changing their mode, so this is done as a user who is not."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    inner = folder / "files" / "0"
    inner.mkdir(parents=True)
    (inner / "agents.py").touch()
    for place in (inner, inner.parent):
        place.chmod(0o555)
    if os.getuid() == 0:
        for place in (folder, inner.parent, inner):
            os.chown(place, 65534, 65534)
    if (child := os.fork()) == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        guardian._REMOVALS = 1
        guardian._remove(str(inner.parent))
        os._exit(0)
    os.waitpid(child, 0)

    assert not inner.parent.exists()
    shutil.rmtree(folder)


def test_folders_of_clusters_whose_driver_was_killed_are_removed_with_the_next_one(tmp_path: Path) -> None:
    for name in ("assay-ray-killed", "assay-ray-alive", "assay-ray-test-other"):
        (tmp_path / name).mkdir()
    (tmp_path / "assay-ray-killed" / "owner").touch()
    (tmp_path / "assay-ray-killed" / "token").touch()
    with (tmp_path / "assay-ray-alive" / "owner").open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        cluster.remove_abandoned_folders(tmp_path)

    assert {folder.name for folder in tmp_path.iterdir()} == {"assay-ray-alive", "assay-ray-test-other"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no port")])
def test_a_cluster_that_does_not_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(**_: object) -> None:
        assert list(tmp_path.glob("assay-ray-*/owner"))
        raise error

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "_LONGEST_FOLDER", 1000)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", fail)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with pytest.raises(PlanError if isinstance(error, Exception) else KeyboardInterrupt):
        cluster.connect(None)

    assert not list(tmp_path.iterdir())
    assert not cluster._locks


@pytest.mark.parametrize("address", [None, "127.0.0.1:6379"])
def test_ray_stores_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    """It may hold the password of a database."""
    found: list[str] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "_LONGEST_FOLDER", 1000)
    monkeypatch.setattr(cluster, "_check_answers", lambda address: None)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: found.append(ray._private.utils.get_entrypoint_name()))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    cluster.connect(address).close()

    assert found == ["assay"]


def test_a_program_that_is_connected_to_another_cluster_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="127.0.0.1:6379"))

    assert cluster.connect("localhost:6379").address == "127.0.0.1:6379"
    assert cluster.connect(None).address == "127.0.0.1:6379"
    with pytest.raises(PlanError, match=r"127\.0\.0\.1:6380"):
        cluster.connect("127.0.0.1:6380")


def test_a_generator_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    site = object.__new__(load_sites.RaySite)
    site.node, site._versions = "10.0.0.2", None
    monkeypatch.setattr(ray, "get", lambda call, timeout: {**find_versions(), "Assay": "0.0.1"})

    with pytest.raises(PlanError, match=r"'10\.0\.0\.2' has Assay 0\.0\.1"):
        site.check_versions()

"""A Ray cluster of simulated nodes: real processes of Ray, all on this machine."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest


class SimulatedCluster:
    """Nodes of two CPUs each that join and are killed as a test wants."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        os.environ.update(
            {
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
                "RAY_TMPDIR": folder,
            }
        )
        logging.getLogger("ray").setLevel(logging.ERROR)
        root = f"{folder}/ray"  # where Ray looks for itself below RAY_TMPDIR
        Path(root).mkdir()
        head = {
            "num_cpus": 2,
            "include_dashboard": False,
            # It starts and stops nodes by load; the tests do that themselves.
            "no_monitor": True,
            "include_log_monitor": False,
            "object_store_memory": 100 * 2**20,
            "temp_dir": root,
            "env_vars": {"TMPDIR": folder},
            # A node that is gone is noticed within seconds, not within half a minute.
            # Workers that nobody asked for would only take time.
            "_system_config": {
                "health_check_period_ms": 500,
                "health_check_failure_threshold": 5,
                "enable_worker_prestart": False,
                "prestart_worker_first_driver": False,
            },
        }
        self._cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
        self.address = self._cluster.address
        self.folder = root
        self.temporary = folder
        """Where the nodes have their temporary files."""

    def add_node(self, cpus: int = 2, env_vars: Mapping[str, str] | None = None, **options: Any) -> Any:
        return self._cluster.add_node(
            wait=False,
            num_cpus=cpus,
            object_store_memory=100 * 2**20,
            include_log_monitor=False,  # nobody reads what it sends to drivers
            temp_dir=self.folder,
            env_vars={"TMPDIR": self.temporary, **(env_vars or {})},
            **options,
        )

    def kill_node(self, node: Any) -> None:
        """At once, as a machine that loses its power."""
        self._cluster.remove_node(node, allow_graceful=False)

    def stop(self) -> None:
        self._cluster.shutdown()


# For a file, no longer: tests of other files kill what they find below their process, and Ray ends a process that has lost its
# cluster for a minute.
@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[SimulatedCluster]:
    """The cluster that all tests of a file share; it has a head with two CPUs, and this process is connected to it."""
    if "CI" not in os.environ:
        pytest.importorskip("ray", reason="needs the extra 'ray'")
    import ray

    folder = tempfile.mkdtemp(prefix="assay-ray-test-", dir="/tmp")
    cluster = SimulatedCluster(folder)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)

"""Facts about the machine, the versions and the commit that a run is made with, and doubts that follow from them.

They are stored with every run, shown by `assay doctor`, and decide whether two runs come from comparable machines. No value of
an environment variable, no user name and no home path is among them: a result may be shown to anybody. A fact that
cannot be found is None; nothing here may make a run fail.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay import __version__
from assay.execute.noise import (
    LOST_WHEN_NOISY,
    PROBE_SECONDS,
    SPREAD_WHEN_NOISY,
    PaceSummary,
    clock_facts,
    probe,
)
from assay.model import Environment
from assay.plugin.git import run_git
from assay.units import percent, significant

_GIT_SECONDS = 2.0
_LOAD_PER_CORE = 0.5


def environment(folder: Path, *, packages: bool = True, probe_seconds: float = PROBE_SECONDS) -> Environment:
    """All facts as of now; takes about a twentieth of a second, most of it the noise probe."""
    sources: dict[str, Callable[[], object]] = {
        "assay": lambda: __version__,
        "load": lambda: list(os.getloadavg()),
        "os": _os,
        "machine": platform.machine,
        "hostname": platform.node,
        "cpu": _cpu,
        "memory": _memory,
        "python": _python,
        "container": _container,
        "virtual_machine": _virtual_machine,
        "on_battery": _on_battery,
        "gpus": lambda: list(_gpus()),
        "clock": clock_facts,
        "noise": lambda: asdict(probe(probe_seconds)),
    }
    if packages:
        sources["packages"] = _packages
    facts: dict[str, object] = {}
    for name, source in sources.items():
        # A fact that an unusual machine cannot provide must not cost the run that it would describe.
        try:
            facts[name] = source()
        except Exception:
            facts[name] = None
    return Environment(facts=facts, vcs=read_vcs(folder), doubts=doubts_about(facts))


def facts_after(environment: Environment, pace: PaceSummary) -> Environment:
    """The environment with how fast and steady the machine was during the run, as `PaceSampler` measured it.

    Where nodes made the executions, that of this machine says nothing about them and is left out.
    """
    if environment.nodes:
        return environment
    doubts = list(environment.doubts)
    if pace.is_noisy and _noise(environment.facts) is None:
        doubts.append(
            f"The machine was noisy during the run: {percent(pace.lost)} of the time went to other programs "
            f"(noisy above {percent(LOST_WHEN_NOISY)}). Close other programs, or use more repetitions."
        )
    facts = {**environment.facts, "noise_during": asdict(pace)}
    return Environment(facts, environment.vcs, tuple(doubts))


def doubts_about(facts: Mapping[str, object]) -> tuple[str, ...]:
    """Reasons, with their numbers, to trust times taken on this machine less."""
    return tuple(doubt for judge in (_noise, _load, _governor, _battery) if (doubt := judge(facts)))


def _noise(facts: Mapping[str, object]) -> str | None:
    """Two signs, because a virtual machine may lose time to its neighbours without its own times spreading."""
    noise = _part(facts, "noise")
    spread, lost = noise.get("spread", 0.0), noise.get("lost", 0.0)
    signs = []
    if spread > SPREAD_WHEN_NOISY:
        signs.append(
            f"times of identical work varied by {percent(spread)} of their median (noisy above {percent(SPREAD_WHEN_NOISY)})"
        )
    if lost > LOST_WHEN_NOISY:
        signs.append(
            f"{percent(lost)} of the time went to other programs (noisy above {percent(LOST_WHEN_NOISY)})"
        )
    if not signs:
        return None
    return f"The machine was noisy at the start: {' and '.join(signs)}. Close other programs, or use more processes."


def _load(facts: Mapping[str, object]) -> str | None:
    """The load average of the last minute: what the noise probe, which takes a moment, may have missed."""
    load, cores = facts.get("load"), _part(facts, "cpu").get("cores_logical")
    if not isinstance(load, list) or not cores or load[0] <= _LOAD_PER_CORE * cores:
        return None
    return (
        f"The machine was busy at the start: load {significant(load[0])} on {cores} cores "
        f"(busy above {significant(_LOAD_PER_CORE * cores)}). Wait until it is idle."
    )


def _governor(facts: Mapping[str, object]) -> str | None:
    governor = _part(facts, "cpu").get("governor")
    if governor in (None, "performance"):
        return None
    return (
        f"The CPU governor is '{governor}', so the clock frequency follows the load and times vary. "
        "Set it: cpupower frequency-set -g performance"
    )


def _battery(facts: Mapping[str, object]) -> str | None:
    return (
        "The machine runs on battery, which slows processors. Plug it in."
        if facts.get("on_battery")
        else None
    )


def _part(facts: Mapping[str, object], name: str) -> Mapping[str, Any]:
    part = facts.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(path: str) -> str:
    try:
        with Path(path).open(errors="replace") as file:
            # Bounded: /proc/cpuinfo of a large machine takes long to make, and its first processor is enough.
            return file.read(8192)
    except OSError:
        return ""


def _os() -> dict[str, object]:
    distribution = None
    if platform.system() == "Darwin":
        distribution = f"macOS {platform.mac_ver()[0]}"
    else:
        with suppress(OSError):
            distribution = platform.freedesktop_os_release().get("PRETTY_NAME")
    return {"system": platform.system(), "release": platform.release(), "distribution": distribution}


# Linux tells these facts through files. Elsewhere psutil is asked, whose import takes ten times as long as reading them.


def _cpu() -> dict[str, object]:
    cores = os.cpu_count()
    # The control group of a container says how many processors it may use: microseconds in each period, or "max".
    allowed, _, period = _text("/sys/fs/cgroup/cpu.max").partition(" ")
    return {
        "model": _cpuinfo("model name") or platform.processor() or platform.machine(),
        "cores_logical": cores,
        "cores_physical": _count_physical_cores(),
        "affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores,
        "quota": int(allowed) / int(period) if allowed.isdigit() else None,
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "mhz": float(mhz) if (mhz := _cpuinfo("cpu MHz")) else None,
    }


def _count_physical_cores() -> int | None:
    siblings = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/core_cpus_list")
    if cores := {_text(str(file)) for file in siblings}:
        return len(cores)
    import psutil

    return psutil.cpu_count(logical=False)


def _cpuinfo(key: str) -> str | None:
    line = re.search(rf"^{key}\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return line[1].strip() if line else None


def _memory() -> dict[str, object]:
    sizes = re.findall(r"^(?:MemTotal|MemAvailable): +(\d+) kB$", _text("/proc/meminfo"), re.MULTILINE)
    if len(sizes) == 2:
        total, available = (int(kilobytes) * 1024 for kilobytes in sizes)
        return {"total_bytes": total, "available_bytes": available}
    import psutil

    memory = psutil.virtual_memory()
    return {"total_bytes": memory.total, "available_bytes": memory.available}


def _python() -> dict[str, object]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": Path(sys.executable).name,
        "build": " ".join(platform.python_build()),
        "compiler": platform.python_compiler(),
        "hash_randomized": bool(sys.flags.hash_randomization),
        "optimize": sys.flags.optimize,
    }


def _packages() -> dict[str, str]:
    """Installed distributions by the names of their folders: a hundred times faster than reading their metadata."""
    versions: dict[str, str] = {}
    for place in sys.path:
        with suppress(OSError):
            for folder in Path(place or ".").iterdir():
                if folder.suffix in (".dist-info", ".egg-info") and "-" in folder.stem:
                    package, version = folder.stem.split("-")[:2]
                    versions.setdefault(package.replace("_", "-").lower(), version)
    return dict(sorted(versions.items()))


_CONTAINER_MARKS = ("kubepods", "docker", "libpod", "containerd", "lxc")


def _container() -> str | None:
    if "Sun Jan 10 15:06:54 PST 2016" in platform.version():  # the build date that gVisor always claims
        return "gvisor"
    if Path("/run/.containerenv").exists():
        return "podman"
    if Path("/.dockerenv").exists():
        return "docker"
    groups = _text("/proc/1/cgroup")
    named = _text("/run/systemd/container").strip()
    return named or next((mark for mark in _CONTAINER_MARKS if mark in groups), None)


_VIRTUAL_VENDORS = {
    "amazon ec2": "ec2",
    "google compute engine": "gce",
    "innotek": "virtualbox",
    "microsoft corporation virtual": "hyper-v",
    "parallels": "parallels",
    "qemu": "kvm",
    "kvm": "kvm",
    "vmware": "vmware",
    "xen": "xen",
}


def _virtual_machine() -> str | None:
    """The hypervisor's name; `hypervisor` where the processor reports one whose name is unknown; None on real hardware."""
    if "microsoft" in platform.release().lower():
        return "wsl"
    dmi = "/sys/class/dmi/id/"
    board = " ".join(_text(dmi + name).strip() for name in ("sys_vendor", "product_name")).lower()
    vendor = next((name for mark, name in _VIRTUAL_VENDORS.items() if mark in board), None)
    flags = (_cpuinfo("flags") or "").split()
    return (
        vendor or _text("/sys/hypervisor/type").strip() or ("hypervisor" if "hypervisor" in flags else None)
    )


def _on_battery() -> bool | None:
    if sys.platform == "linux" and not any(Path("/sys/class/power_supply").glob("*")):
        return False
    import psutil

    # Absent from psutil on some platforms; none where there is no battery.
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    return battery is not None and not battery.power_plugged


def _gpus() -> Iterator[dict[str, object]]:
    # The import alone costs as much as everything else here: only where a driver is loaded.
    if not any(Path(sign).exists() for sign in ("/proc/driver/nvidia/version", "/dev/dxg")):
        return
    import pynvml

    pynvml.nvmlInit()
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(device)
            yield {"name": pynvml.nvmlDeviceGetName(device), "memory_total": memory.total}
    finally:
        pynvml.nvmlShutdown()


_GIT_STATUS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch")


def read_vcs(folder: Path) -> dict[str, object]:
    """Commit, branch and whether tracked files were changed; empty outside a repository and without git."""
    # Without locks and file system monitor: looking at a repository must not write to it, or start a daemon for it.
    answer = run_git(folder, *_GIT_STATUS, "--untracked-files=no", seconds=_GIT_SECONDS)
    return {} if answer is None or answer.returncode else _vcs_of(answer.stdout.splitlines())


def _vcs_of(lines: list[str]) -> dict[str, object]:
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    commit, branch = heads.get("branch.oid"), heads.get("branch.head")
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": None if branch == "(detached)" else branch,
        "dirty": any(not line.startswith("#") for line in lines),
    }

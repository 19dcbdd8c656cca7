"""The instrument that reads the kernel's own accounts (getrusage): exact, without a thread, and at no cost."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from typing import ClassVar

from assay.model import Better, Metric
from assay.plugin import ExperimentContext, Reading

_FIELDS = {
    "user_seconds": "ru_utime",
    "system_seconds": "ru_stime",
    "voluntary_switches": "ru_nvcsw",
    "involuntary_switches": "ru_nivcsw",
    "minor_faults": "ru_minflt",
    "major_faults": "ru_majflt",
}
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Rusage:
    """Resource usage of the process and its terminated children during the execution (getrusage).

    `max_rss_bytes` is no difference: the system knows only the peak since the process began.
    """

    slows: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        **{name: Metric(name, "s" if name.endswith("_seconds") else "", Better.LOWER) for name in _FIELDS},
        "max_rss_bytes": Metric("max_rss_bytes", "bytes", Better.LOWER),
    }

    def start(self, context: ExperimentContext) -> dict[str, float]:
        return _read_usage()

    def stop(self, state: dict[str, float]) -> Reading:
        now = _read_usage()
        return Reading(
            {name: now[name] - state[name] for name in _FIELDS} | {"max_rss_bytes": now["max_rss_bytes"]}
        )


def _read_usage() -> dict[str, float]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    charged = {name: getattr(own, field) + getattr(children, field) for name, field in _FIELDS.items()}
    return charged | {"max_rss_bytes": max(own.ru_maxrss, children.ru_maxrss) * _MAXRSS_UNIT}

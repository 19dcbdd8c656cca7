"""Charts of profiles: when each span was open, and the flame graph.

They are kept apart from `profile` so that commands without charts do not import the chart modules.
"""

from __future__ import annotations

from typing import Any

from assay.model.profile import FlameFrame, Profile
from assay.plugin.charts import Chart, Spec, between, build_tips, frame, nominal, numeric
from assay.plugin.figures import scale_for
from assay.units import percent, seconds

_WIDTH = 620
_ROW = 18
_CHARACTER = 6.2
"""Pixels of one character of a label."""
_KINDS = ["computing", "library", "waiting"]


def span_charts(profile: Profile) -> list[Chart]:
    """When each phase was open; none where there is only one."""
    phases = [phase for phase in profile.phases if phase.starts]
    if len(phases) < 2:
        return []
    scale = scale_for("s", profile.seconds)
    rows = [
        {
            "lane": f"{'  ' * phase.depth}{phase.name}",
            "kind": phase.kind,
            "start": round(start / scale.factor, 6),
            "end": round(end / scale.factor, 6),
            "took": seconds(end - start),
        }
        for phase in phases
        for start, end in phase.starts
    ]
    lanes = list(dict.fromkeys(str(row["lane"]) for row in rows))
    x = numeric(
        "start",
        title=f"{scale.label} after the execution began",
        scale={"domain": [0, profile.seconds / scale.factor], "nice": False},
    )
    spec: Spec = {
        **frame(f"Spans: {profile.trial}", "a typical sampled execution"),
        "height": max(60, 26 * len(lanes)),
        "data": {"values": rows},
        "mark": {"type": "bar", "height": {"band": 0.62}, "stroke": "white", "strokeWidth": 0.6},
        "encoding": {
            **between("x", x, "start", "end"),
            "y": nominal("lane", sort=lanes, title=None, axis={"grid": False, "labelLimit": 260}),
            "color": nominal("kind", title="kind"),
            "tooltip": build_tips("lane", "kind", "took"),
        },
    }
    return [Chart(f"profile-spans-{profile.trial}", spec)]


def flame_charts(profile: Profile) -> list[Chart]:
    """The flame graph: the width of a frame is the wall time in which it was on the stack; callers are above what they call."""
    total = sum(frame.seconds for frame in profile.flame if frame.depth == 0)
    if not total:
        return []
    rows = [_flame_row(frame, total) for frame in profile.flame]
    levels = 1 + max(frame.depth for frame in profile.flame)
    domain = {"domain": [0, 1], "nice": False}
    x = numeric("start", scale=domain, axis=None)
    y: Spec = {"field": "level", "type": "ordinal", "axis": None}
    tips = build_tips(name="place", took="time", share="share")
    spec: Spec = {
        **frame(f"Flame graph: {profile.trial}", "width: wall time of one execution; what is called is below its caller"),
        "height": _ROW * levels,
        "width": _WIDTH,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.94}, "stroke": "white", "strokeWidth": 0.5},
                "encoding": {
                    **between("x", x, "start", "end"),
                    "y": y,
                    "color": nominal("kind", scale={"domain": _KINDS}, title=None),
                    "tooltip": tips,
                },
            },
            {
                "transform": [{"filter": "datum.label != ''"}],
                "mark": {"type": "text", "align": "left", "dx": 3, "fontSize": 10, "color": "white", "clip": True},
                "encoding": {"x": x, "y": y, "text": {"field": "label"}, "tooltip": tips},
            },
        ],
    }  # fmt: skip
    return [Chart(f"profile-flame-{profile.trial}", spec)]


def _flame_row(frame: FlameFrame, total: float) -> dict[str, Any]:
    """A frame with a label that fits into it; a longer one is cut, and the tooltip has it in full."""
    width = frame.seconds / total
    label = frame.name
    room = int((width * _WIDTH - 6) / _CHARACTER)
    return {
        "name": frame.name,
        "label": label if len(label) <= room else (label[: room - 1] + "…" if room > 4 else ""),
        "start": round(frame.start / total, 6),
        "end": round(frame.start / total + width, 6),
        "level": frame.depth,
        "took": seconds(frame.seconds),
        "share": percent(width),
        "kind": frame.kind,
    }

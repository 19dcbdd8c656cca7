"""The spans of one execution as a waterfall."""

from __future__ import annotations

from collections.abc import Sequence

from assay.plugin.charts import Chart, Spec, between, build_tips, frame, nominal, numeric
from assay.plugin.figures import scale_for
from assay.report.execution_texts import ShownSpan
from assay.units import seconds

_MOST = 60


def span_chart(spans: Sequence[ShownSpan]) -> Chart:
    """A bar for each span, in the order in which they began; the first ones where there are many."""
    longest = sorted(spans, key=lambda span: (span.start, -span.seconds))[:_MOST]
    whole = max(span.start + span.seconds for span in longest) or 1.0
    scale = scale_for("s", whole)
    rows = [
        {
            # Numbered, because several spans may have one name.
            "lane": f"{number} {span.name}",
            "kind": span.kind,
            "start": round(span.start / scale.factor, 6),
            "end": round((span.start + span.seconds) / scale.factor, 6),
            "took": seconds(span.seconds),
        }
        for number, span in enumerate(longest, 1)
    ]
    x = numeric(
        "start",
        title=f"{scale.label} after the execution began",
        scale={"domain": [0, whole / scale.factor], "nice": False},
    )
    note = "where the time of the execution went"
    spec: Spec = {
        **frame(
            "Spans", note if len(longest) == len(spans) else f"{note}; the first {_MOST} of {len(spans)}"
        ),
        "height": max(48, 24 * len(rows)),
        "data": {"values": rows},
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            **between("x", x, "start", "end"),
            "y": nominal(
                "lane",
                sort=[row["lane"] for row in rows],
                title=None,
                axis={"grid": False, "labelLimit": 220},
            ),
            "color": nominal("kind", title="kind"),
            "tooltip": build_tips("lane", "kind", "took"),
        },
    }
    return Chart("spans", spec)

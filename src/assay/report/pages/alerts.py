"""Alerts as a section: what was told to people, and whether it reached them."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.alert import Alert, AlertState
from assay.model.page import Cell, PageSection, Table
from assay.model.regression import Severity
from assay.report.console.regressions import SEVERITY_TONES
from assay.report.figures import NOTHING

_TONES = {
    AlertState.SENT: "good",
    AlertState.FAILED: "bad",
    AlertState.PENDING: "warn",
    AlertState.UNSENT: "quiet",
}


def alerts_section(alerts: Sequence[Alert], *, has_webhook: bool) -> PageSection:
    """The newest first."""
    notes = (
        []
        if has_webhook
        else ["No webhook is set, so alerts are listed here only: [server] webhook in assay.toml"]
    )
    if not alerts:
        sentence = "No alert has been raised yet: new regressions, failed schedules and agents without recent results raise one."
        return PageSection("Alerts sent", finding=sentence, notes=notes, anchor="alerts")
    rows = [
        [
            Cell(alert.text),
            Cell(
                alert.severity,
                tone=SEVERITY_TONES[Severity(alert.severity)] if alert.severity in set(Severity) else "",
            ),
            Cell(alert.kind.value.replace("_", " ")),
            Cell(
                alert.state.value,
                tone=_TONES[alert.state],
                note=alert.error if alert.state in (AlertState.FAILED, AlertState.PENDING) else "",
            ),
            Cell(str(alert.attempts) if alert.attempts else NOTHING),
            Cell(f"{alert.created:%Y-%m-%d %H:%M} UTC", tone="quiet"),
        ]
        for alert in alerts
    ]
    titles = ["Alert", "Severity", "About", "Delivery", "Attempts", "Raised"]
    return PageSection("Alerts sent", [Table(titles, rows, words=(1, 2, 3, 5))], notes=notes, anchor="alerts")

"""The samples of a run as speedscope files, one for each sampled execution."""

from __future__ import annotations

from pathlib import Path

from assay.errors import ReportError
from assay.model import Report


class SpeedscopeFiles:
    """Files for https://www.speedscope.app, which can be used offline, and for any other program that reads its format."""

    def write(self, report: Report, folder: Path) -> list[Path]:
        files = []
        for trial in report.trials:
            for artifact in trial.artifacts:
                if artifact.type == "speedscope":
                    prefix = f"{trial.stored.trial.index}-" if len(report.trials) > 1 else ""
                    file = folder / f"{prefix}{Path(artifact.name).name}"
                    file.write_bytes(artifact.content)
                    files.append(file)
        if not files:
            raise ReportError(f"Run '{report.run.id}' has no samples. Take some: assay profile AGENT")
        return files

"""What the Python API returns: findings as plain data, as a table for pandas, as text, and as HTML for notebooks.

Results are the documents and the printed pages of the commands, not a third form: what a notebook shows is what the terminal
shows, and what a program reads is what `--json` prints. pandas and rich are imported only when somebody asks for them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from assay.errors import MissingExtra
from assay.model import Doubt, Report, TrialReport

if TYPE_CHECKING:
    from rich.console import Console

    Frame = Any
    """A pandas.DataFrame; pandas is optional, so its type is not known here."""

Print = Callable[["Console"], None]
_WIDTH = 110
"""The widest that results print; a narrower terminal has its own width."""


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """One run with its findings, as `assay.run` returns it.

    Its properties read from `report`; documents and tables are built when they are asked for. In a
    notebook it shows itself as a page.
    """

    report: Report
    """The findings as objects, as reporters get them."""
    files: tuple[Path, ...] = ()
    """Reports that were asked for, where they were written."""

    @property
    def run_id(self) -> str:
        """The run's id, for commands such as `assay show`."""
        return self.report.run.id

    @property
    def status(self) -> str:
        """`completed`; `failed` where a trial has no ok execution; `incomplete` where some are missing; `over_budget`."""
        return self.report.run.state.value

    @property
    def isolation(self) -> str:
        """`process`, `cold` or `inline`: how far executions were kept apart from this process."""
        return ", ".join(dict.fromkeys(t.stored.trial.isolation.value for t in self.report.trials))

    @property
    def trials(self) -> tuple[TrialReport, ...]:
        """Agent by benchmark and point: estimates, counts and ratings."""
        return self.report.trials

    @property
    def warnings(self) -> tuple[Doubt, ...]:
        """Reasons to read the figures with care."""
        return self.report.doubts

    def to_dict(self, *, executions: bool = False) -> dict[str, Any]:
        """The document of `assay run --json`; with `executions`, that of `assay report --format json`."""
        from assay.report.documents.result import run_document

        document = run_document(self.report, with_executions=executions)
        return document if executions else {**document, "files": [str(file) for file in self.files]}

    def to_pandas(self) -> Frame:
        """A row for each execution, with the columns of `assay report --format csv`."""
        from assay.report.documents.csv import execution_table

        table = execution_table(self.report)
        return _frame(table.rows, table.columns)

    def __repr__(self) -> str:
        run = self.report.run
        return f"<assay run {run.id} of {run.name}: {self.status}, isolation {self.isolation}>"

    def __str__(self) -> str:
        return _text(self._print)

    def _repr_html_(self) -> str:
        return _html(self._print, repr(self))

    def _print(self, console: Console) -> None:
        from assay.report.console.summary import print_summary

        print_summary(self.report, console)


class _Shown:
    """Shows itself as the command prints it, in a terminal and in a notebook."""

    _show: Print

    def __str__(self) -> str:
        return _text(self._show)

    def _repr_html_(self) -> str:
        return _html(self._show)


class DocumentResult(_Shown, dict[str, Any]):
    """A JSON document of a command, which also shows itself.

    It is a dictionary, so that code written against `--json` works unchanged. `rows` names the key whose list becomes a
    table; `show` prints the answer on a console, with the objects that the document was made of.
    """

    def __init__(self, document: Mapping[str, Any], rows: str, show: Print) -> None:
        super().__init__(_plain(document))
        self._rows, self._show = rows, show

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary."""
        return dict(self)

    def to_pandas(self) -> Frame:
        """A row for each comparison."""
        return _frame(self[self._rows])


class ComparisonResult(DocumentResult):
    """The document of `assay compare --json`."""


class GateResult(DocumentResult):
    """The document of `assay gate --json`."""

    @property
    def passed(self) -> bool:
        """Whether all results are there, all requirements are met and nothing got worse as far as the data shows."""
        return bool(self["passed"])


class LeaderboardResult(_Shown, list[dict[str, Any]]):
    """The document of `assay leaderboard --json`: one for each suite and, last, one across all of them."""

    def __init__(self, boards: Iterable[dict[str, Any]], show: Print) -> None:
        super().__init__(_plain(list(boards)))
        self._show = show

    def to_dict(self) -> dict[str, Any]:
        """Return the leaderboards under the key `leaderboards`."""
        return {"leaderboards": list(self)}

    def to_pandas(self) -> Frame:
        """A row for each agent of each leaderboard; simulated agents are marked."""
        return _frame(
            {"suite": board["suite"], "metric": board["metric"], "simulated": kind == "simulated"} | row
            for board in self
            for kind in ("standings", "simulated")
            for row in board[kind]
        )


def _plain(document: Any) -> Any:
    """Exactly what the command prints with --json, times as text among it.

    The way through JSON text makes a copy, so that a caller who changes the result changes nothing else.
    """
    return json.loads(json.dumps(document, allow_nan=False, default=str))


def _frame(rows: Iterable[Any], columns: Sequence[str] | None = None) -> Frame:
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise MissingExtra("to_pandas() needs the package 'pandas': pip install pandas") from None
    return pandas.DataFrame(list(rows), columns=columns)


def _text(show: Print) -> str:
    """What the command prints, without colours: results are printed in logs and doctests as well."""
    from assay.report.console.safe_console import SafeConsole

    # A notebook or a log has no terminal; then the width is that of the documentation's examples.
    file = io.StringIO()
    width = min(_WIDTH, get_terminal_size((_WIDTH, 24)).columns)
    show(SafeConsole(file=file, width=width, highlight=False, color_system=None))
    return file.getvalue().rstrip()


def _html(show: Print, caption: str = "") -> str:
    """What the command prints, with its colours."""
    from assay.report.console.safe_console import SafeConsole

    # Without `force_jupyter=False` rich would display the text in the notebook by itself, above what is returned here.
    console = SafeConsole(file=io.StringIO(), width=_WIDTH, highlight=False, record=True, force_jupyter=False)
    show(console)
    code = console.export_html(
        inline_styles=True,
        code_format='<pre style="line-height:1.25;overflow-x:auto"><code style="font-family:monospace">{code}</code></pre>',
    )
    return f"<div>{escape(caption)}</div>{code}" if caption else code

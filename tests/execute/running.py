"""The command as a process that can be interrupted and killed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.command import AssayInline, Done, heeding_signals
from tests.execute.carrying import SUBJECTS

COMMAND = (str(Path(sys.executable).with_name("assay")),)
PATIENT = (
    sys.executable,
    "-c",
    "import assay.builtin.executors.local as local; local.GRACE_SECONDS = 600\n"
    "from assay.cli.main import main; main()",
)
"""The command with all the time in the world for what was asked to end, so that no pause of the machine decides."""
LONG = 120
"""Seconds in which anything ends that ends at all, however slow the machine."""


class Running:
    """`assay` in a folder with a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "assay.db"

    def spec(self, **keys: object) -> str:
        path = self.folder / "spec.json"
        # A copy, because the fixture `own_names` forgets the files of the folder only.
        subjects = shutil.copy(SUBJECTS, self.folder)
        path.write_text(json.dumps({"load": [str(subjects)], **keys}))
        return str(path)

    def start(self, *arguments: str, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *arguments, "--json", "--db", f"sqlite:///{self.database}"],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=heeding_signals,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=LONG)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def inline(self, *arguments: str) -> Done:
        """The same without a process for the command, for tests that are not about it; take the fixture `own_names`."""
        words = (*arguments, "--json", "--db", f"sqlite:///{self.database}")
        return AssayInline(self.folder)(*words, ASSAY_TEST=os.environ["ASSAY_TEST"])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Nothing while there is no database yet."""
        if not self.database.exists():
            return []
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            connection.close()

    @property
    def state(self) -> str:
        return str(self.rows("SELECT state FROM runs")[0][0])

    @property
    def owner(self) -> str:
        found = self.rows("SELECT owner FROM runs")
        return str(found[0][0]) if found else ""

    @property
    def executions(self) -> list[tuple[int, int, str, int, str]]:
        """Trial, process, phase, repetition and status, in the order of storing."""
        return self.rows(
            "SELECT t.position, e.process, e.phase, e.repetition, e.status FROM executions e"
            " JOIN trials t ON t.id = e.trial_id ORDER BY e.trial_id, e.seq"
        )

    @property
    def statuses(self) -> list[str]:
        return [row[4] for row in self.executions]

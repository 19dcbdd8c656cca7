"""Small programs that behave, and misbehave, as agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from assay.builtin.agents.command import Command

HEAD = """import json, os, sys, time
def requests():
    for line in sys.stdin:
        yield json.loads(line)
def say(**answer):
    print(json.dumps(answer), flush=True)
"""
ECHO = "for r in requests(): say(id=r['id'], output=r['input'])"


def command(folder: Path, program: str, *words: str, **options: Any) -> Any:
    (folder / "program.py").write_text(HEAD + program)
    return Command([sys.executable, "-S", "-E", "program.py", *words], folder=str(folder), **options)

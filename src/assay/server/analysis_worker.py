"""Answers questions of the server, one a line, in a process of its own: `python -m assay.server.analysis_worker`.

It keeps the server free for other requests, and its memory small. The server holds the standard input open; when that closes,
this process ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from assay.errors import AssayError, StoreError
from assay.model.codec import to_json, to_plain
from assay.server.questions import AnalysisQuestion, answer_question
from assay.spec.settings import find_settings
from assay.store.store import Store

_NICE = 10
"""Requests that wait for the server come first."""


def main() -> None:
    os.nice(_NICE)
    settings = find_settings(Path.cwd())
    with Store.open(settings.db, workspace=settings.workspace) as store:
        for line in sys.stdin:
            document = json.loads(line)
            question = AnalysisQuestion(document["kind"], document["suite"], document["options"])
            sys.stdout.write(to_json(_answer(store.in_workspace(document["workspace"]), question)) + "\n")
            sys.stdout.flush()


def _answer(store: Store, question: AnalysisQuestion) -> dict[str, object]:
    try:
        return {"answer": to_plain(answer_question(store, question))}
    except StoreError:
        raise  # a database that is away is no answer: the server asks again later
    except AssayError as error:
        return {"error": type(error).__name__, "message": str(error)}


if __name__ == "__main__":
    main()

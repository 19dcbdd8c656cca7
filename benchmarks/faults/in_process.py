"""Runs commands in this one process, as told by lines on standard input, and tells how each ended: a start costs too much."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time

_MEMORY = 4 * 2**30


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    from assay.cli.main import main as assay

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        os.chdir(job["folder"])
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        started, used = time.monotonic(), time.process_time()
        code, problem = -1, ""
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                assay(job["words"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"[:500]
        err.seek(0)
        told = err.read()
        found = {
            "code": code, "problem": problem, "err": told[-2000:], "is_traced": "Traceback (most recent" in told,
            "seconds": time.monotonic() - started, "cpu": time.process_time() - used,
        }  # fmt: skip
        print(json.dumps(found), file=answers)


if __name__ == "__main__":
    main()

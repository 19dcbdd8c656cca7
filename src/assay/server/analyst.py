"""Sends slow analyses to a separate process, one at a time.

A page that rests on the comparison of hundreds of agents takes seconds to compute. No request waits for it: until it is there, the page
shows the figures from before and says so, or that they are being computed.
"""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Callable, Mapping
from threading import Condition, Thread, Timer
from time import monotonic

from assay.errors import AssayError, LookupFailed, PlanError
from assay.model.codec import to_json
from assay.server.processes import start_worker
from assay.server.questions import AnalysisQuestion, PreparedAnswer, answer_from_plain

_log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
"""Seconds the idle process is kept alive, because starting one takes a second."""
_RETRY_SECONDS = 30.0
"""Before a question is asked again whose process died over it."""
_MOST_SECONDS = 600.0
"""After which the process is ended over a question, so that the others are not kept waiting for ever."""
_MOST_WAITING = 100
_ERRORS: Mapping[str, type[AssayError]] = {kind.__name__: kind for kind in (LookupFailed, PlanError)}
"""What is wrong with a question; any other error is told by its message alone."""

Answered = PreparedAnswer | AssayError
Receive = Callable[[Answered], None]
Asked = tuple[str, str]
"""The workspace and the key of a question."""


class Analyst:
    """The process that analyses results for the server, and the questions that wait for it.

    Analyses take seconds of pure computation, which in the server's own process would delay every other
    request. One process answers one question after the other; it is started for the first question and
    ended when none has come for a while. The same question is never queued twice. A question over which
    the process died is refused for a while, so that it cannot keep the others from being answered.
    """

    def __init__(self, db: str, workspace: str) -> None:
        self._db, self._workspace = db, workspace
        self._waiting: dict[Asked, tuple[AnalysisQuestion, Receive]] = {}
        self._failed: dict[Asked, float] = {}
        """When a process last died over a question."""
        self._changed = Condition()
        self._is_ending = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: Thread | None = None

    def ask(self, workspace: str, question: AnalysisQuestion, receive: Receive) -> None:
        """Have a question answered, once, however often it is asked before."""
        key = (workspace, question.key)
        with self._changed:
            if self._is_ending or monotonic() - self._failed.get(key, -_RETRY_SECONDS) < _RETRY_SECONDS:
                return
            if key not in self._waiting and len(self._waiting) < _MOST_WAITING:
                self._waiting[key] = question, receive
                self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._work, name="assay-analyst", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_ending = True
            self._waiting.clear()
            self._changed.notify()
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join()
        self._end_process()

    def _work(self) -> None:
        """Hand one question after the other to the process, until the end.

        Whatever goes wrong with a question, the process is replaced and the later questions are answered.
        The question that failed is refused for a while.
        """
        while (found := self._wait_for_question()) is not None:
            question_key, question, receive = found
            try:
                receive(self._have_answered(question_key[0], question))
            except Exception as error:  # whatever it was, later questions are answered
                if not self._is_ending:
                    _log.warning("the process that analyses results failed: %s", error)
                self._end_process()
                self._failed = {
                    key: at for key, at in self._failed.items() if monotonic() - at < _RETRY_SECONDS
                }
                self._failed[question_key] = monotonic()
            with self._changed:
                self._waiting.pop(question_key, None)

    def _wait_for_question(self) -> tuple[Asked, AnalysisQuestion, Receive] | None:
        """The question that waits longest, which stays among those that wait until it is answered; None at the end."""
        with self._changed:
            while not self._waiting and not self._is_ending:
                if not self._changed.wait(_IDLE_SECONDS):
                    self._end_process()
            if self._is_ending:
                return None
            key, (question, receive) = next(iter(self._waiting.items()))
            return key, question, receive

    def _have_answered(self, workspace: str, question: AnalysisQuestion) -> Answered:
        """ValueError if the process says nothing, as one that died."""
        if self._process is None or self._process.poll() is not None:
            self._end_process()
            self._process = start_worker("analysis_worker", self._db, self._workspace, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        whole = {
            "workspace": workspace,
            "kind": question.kind,
            "suite": question.suite,
            "options": question.options,
        }
        deadline = Timer(_MOST_SECONDS, self._process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            self._process.stdin.write(to_json(whole).encode() + b"\n")
            self._process.stdin.flush()
            reply = json.loads(self._process.stdout.readline())
        finally:
            deadline.cancel()
        if "error" in reply:
            return _ERRORS.get(reply["error"], AssayError)(reply["message"])
        return answer_from_plain(reply["answer"])

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

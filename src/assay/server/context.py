"""What the routes share: the project, its store and its queue.

There is one context for each workspace that is asked for, with a store, caches and counts of its own, so that nothing of one
workspace can get into the answers of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from secrets import token_bytes
from threading import Lock
from time import monotonic
from typing import Annotated, Any, TypeVar

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response

from assay.errors import AssayError
from assay.model import Suite
from assay.model.access import ApiKey, Scope
from assay.server.analyses import Analyses
from assay.server.analyst import Analyst, Answered
from assay.server.boards import BoardKeeper, BoardMemory
from assay.server.cache import KeptByState, Recent
from assay.server.counts import RequestCounts
from assay.server.questions import AnalysisQuestion, PreparedAnswer, answer_question
from assay.server.queue import RunQueue
from assay.server.run_status import read_status
from assay.spec.settings import Settings
from assay.store.search import CoverageCell
from assay.store.store import Store

MAX_RUNS, MAX_QUEUE, SYNC_SECONDS = 2, 100, 60
LOCAL = "local"
_FRESH_SECONDS = 0.4
_SUITE_SECONDS = 5.0
"""The file of a suite and its data may be this old on a page: reading hundreds of cases takes long."""
_ANSWER_BYTES = 16 << 20
_PARTS = 200
_FEW_AGENTS = 30
"""Maximum agents for which a leaderboard or an analysis of costs takes no longer than the page around it."""
Part = TypeVar("Part")


class SharedProgress:
    """Where runs stand, read once for all who watch the same run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, tuple[float, asyncio.Task[dict[str, Any]]]] = {}

    async def read(self, run_id: str) -> dict[str, Any]:
        """The status of a run, at most a moment old."""
        at, task = self._read.get(run_id, (0.0, None))
        now = monotonic()
        if task is None or now - at > _FRESH_SECONDS:
            self._read = {key: entry for key, entry in self._read.items() if now - entry[0] <= _FRESH_SECONDS}
            task = asyncio.ensure_future(run_sync(read_status, self._store, run_id))
            self._read[run_id] = (now, task)
        return await asyncio.shield(task)


class BeingComputed(Exception):
    """Nothing of an answer is known yet; a process works it out."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer, and how old it is if newer results are still being worked in."""

    answer: PreparedAnswer
    outdated_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """What the contexts of all workspaces keep together, each under its own name: there is one bound for all of them."""

    answers: KeptByState[bytes] = field(default_factory=lambda: KeptByState(_ANSWER_BYTES, len))
    parts: KeptByState[Any] = field(default_factory=lambda: KeptByState(_PARTS))
    prepared: KeptByState[Answered] = field(default_factory=lambda: KeptByState(_PARTS))
    analyses: Analyses = field(default_factory=Analyses)
    boards: BoardMemory = field(default_factory=BoardMemory)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """Everything of one workspace that outlives a request."""

    settings: Settings
    store: Store
    queue: RunQueue
    analyst: Analyst
    memory: SharedMemory = field(default_factory=SharedMemory)
    progress: SharedProgress = field(init=False)
    counts: RequestCounts = field(default_factory=RequestCounts)
    suite_files: Recent[Suite] = field(default_factory=lambda: Recent(_SUITE_SECONDS))
    boards: BoardKeeper = field(init=False)
    db: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", SharedProgress(self.store))
        object.__setattr__(self, "boards", BoardKeeper(self.store, self.db, self.memory.boards))

    @property
    def analyses(self) -> Analyses:
        return self.memory.analyses

    def answer(self, key: Hashable, suite: str | None, make: Callable[[], Response]) -> Response:
        """An answer about results of a suite, or of all; it is made again when one of them or a baseline has changed."""
        full_key = self.store.workspace, key
        written = self.memory.answers.get(full_key, self._read_state(suite), lambda: bytes(make().body))
        return Response(written, media_type="application/json")

    def keep(self, key: Hashable, suite: str | None, make: Callable[[], Part]) -> Part:
        """A part of a page about results of a suite, or of all, kept like an answer."""
        part: Part = self.memory.parts.get((self.store.workspace, key), self._read_state(suite), make)
        return part

    def keep_overview(self, key: Hashable, make: Callable[[], Part]) -> Part:
        """What is stored of all agents or suites, which takes long to count; made again also when a run has begun."""
        state = self._read_state(None), self.store.count_runs()
        part: Part = self.memory.parts.get((self.store.workspace, key), state, make)
        return part

    def coverage(self, agents: Collection[str] | None = None) -> list[CoverageCell]:
        """What `Store.coverage` finds, kept for as few agents as a page shows."""
        if agents is None or len(agents) > _FEW_AGENTS:
            return self.store.coverage(agents)
        return self.keep_overview(("coverage", *agents), lambda: self.store.coverage(agents))

    def latest_by_suite(self) -> Mapping[str, Mapping[str, datetime]]:
        """What `Store.latest_by_suite` finds; of all that is kept, only suites that have changed since are read again."""
        key, changes = (self.store.workspace, "latest by suite"), self.store.changes()
        kept = self.memory.parts.recall(key)
        if kept is None:
            found = self.store.latest_by_suite()
        else:
            before, found = kept.value
            if changed := {suite for suite, _ in before.items() ^ changes.items()}:
                found = {suite: trials for suite, trials in found.items() if suite not in changed}
                found |= self.store.latest_by_suite(changed)
        self.memory.parts.put(key, None, (changes, found))
        return found

    def keep_of_run(self, key: Hashable, run_id: str, make: Callable[[], Part]) -> Part:
        """A part of a page about one run, kept while its results stay as they are."""
        state = self.store.fingerprint(run_id)
        part: Part = self.memory.parts.get((self.store.workspace, run_id, key), state, make)
        return part

    def prepare(self, question: AnalysisQuestion, at_once: bool = False) -> Prepared:
        """What is known of a question: with many agents, the answer from before until the new one is there.

        With `at_once` the request waits for the first answer, which must not take long: somebody has just chosen what to see.
        Raises BeingComputed where there is none, and what is wrong with the question.
        """
        key, state = (self.store.workspace, question.key), self._read_state(question.suite)
        kept = self.memory.prepared.recall(key)
        is_current = kept is not None and kept.state == state
        is_awaited = at_once and kept is None
        if not is_current and (is_awaited or self._has_few_agents(question.suite, state)):
            prepared = answer_question(self.store, question)
            self.memory.prepared.put(key, state, prepared)
            return Prepared(prepared)

        def receive(answered: Answered) -> None:
            self.memory.prepared.put(key, state, answered)

        if not is_current:
            self.analyst.ask(self.store.workspace, question, receive)
        if kept is None:
            raise BeingComputed
        if isinstance(kept.value, AssayError):
            # A new one each time: whatever is raised keeps the frames that it passed.
            raise type(kept.value)(str(kept.value))
        return Prepared(kept.value, None if is_current else monotonic() - kept.at)

    def _has_few_agents(self, suite: str | None, state: object) -> bool:
        """Counted once for a state: a page asks several questions, and again until they are answered."""
        key = (self.store.workspace, "number of agents", suite)
        number: int = self.memory.parts.get(key, state, lambda: self.store.count_agents(suite))
        return number <= _FEW_AGENTS

    def _read_state(self, suite: str | None) -> object:
        """What changes whenever the results of a suite or baselines do; and every day, as results get old."""
        changes, baselines = self.store.changes_and_baselines()
        return changes if suite is None else changes.get(suite), baselines, datetime.now(UTC).date()

    @property
    def max_runs(self) -> int:
        return int(self.settings.server.get("max_runs", MAX_RUNS))

    @property
    def max_queue(self) -> int:
        return int(self.settings.server.get("max_queue", MAX_QUEUE))

    @property
    def sync_seconds(self) -> float:
        return float(self.settings.server.get("sync_seconds", SYNC_SECONDS))


class Contexts:
    """The contexts of all workspaces, each made when it is first asked for; `own` is that which the server was started with."""

    def __init__(self, own: ServerContext) -> None:
        self.own = own
        self._lock = Lock()
        self._contexts = {own.store.workspace: own}

    def find(self, workspace: str) -> ServerContext:
        with self._lock:
            if workspace not in self._contexts:
                store = self.own.store.in_workspace(workspace)
                settings = without_project_files(self.own.settings)
                own = self.own
                self._contexts[workspace] = ServerContext(
                    settings, store, own.queue, own.analyst, own.memory, db=own.db
                )
            return self._contexts[workspace]

    def close(self) -> None:
        with self._lock:  # background work may still ask for one
            contexts = list(self._contexts.values())
        for context in contexts:
            context.boards.close()
        self.own.analyst.close()


def without_project_files(settings: Settings) -> Settings:
    """The settings for other workspaces than that of the server: files of the project belong to that one alone."""
    return replace(settings, load=(), agents=(), suites=())


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """Who makes a request, and what it may see: the workspace of its key, or that of the server while there are no keys."""

    context: ServerContext
    key: ApiKey | None = None
    session: str = ""
    """The secret of the session of a browser; empty where the key itself came with the request."""

    @property
    def form_token(self) -> str:
        """What a form has to bring back in this session; it cannot be derived without the session's secret.

        It is masked by a random number, so that no two pages hold the same: the length of a compressed page tells nothing.
        """
        mask = token_bytes(32)
        return (mask + _combine(mask, self._form_secret)).hex() if self.session else ""

    def has_form_token(self, sent: str) -> bool:
        """Whether a form brought back a token of this session."""
        try:
            raw = bytes.fromhex(sent)
        except ValueError:
            return False
        return bool(self.session) and compare_digest(_combine(raw[:32], raw[32:]), self._form_secret)

    @property
    def _form_secret(self) -> bytes:
        return sha256(f"form {self.session}".encode()).digest()

    def may(self, scope: str) -> bool:
        return self.key is None or self.key.scope.allows(Scope(scope))


def _combine(mask: bytes, content: bytes) -> bytes:
    """Exclusive or, as far as both go."""
    return bytes(byte ^ other for byte, other in zip(mask, content, strict=False))


CALLER = "assay.caller"
"""Where the scope of a request has its caller, put there by the access control."""


def caller_of(request: Request) -> RequestCaller:
    """Who asks, as the access control has found out."""
    caller: RequestCaller = request.scope[CALLER]
    return caller


# Not a plain function, which would be called in another thread.
async def _find_context(request: Request) -> ServerContext:
    return caller_of(request).context


Context = Annotated[ServerContext, Depends(_find_context)]


def find_author(request: Request) -> str:
    """The name of the key that a request was made with; without keys, the user of this machine."""
    key = caller_of(request).key
    return key.name if key else LOCAL


Author = Annotated[str, Depends(find_author)]

"""What is put under stress: a URL or an agent, asked as it is, with other prompts, or by way of a proxy."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from assay.dialects.lookup import PROVIDERS
from assay.http.request import is_loopback
from assay.load.agent_worker import MOST_AT_ONCE
from assay.load.build import (
    Data,
    LoadOptions,
    PreparedLoad,
    build_prepared_agent_load,
    build_prepared_load,
    prompts_of,
)
from assay.load.engine import order_for
from assay.load.proxy import FaultProxy
from assay.load.quality import Checker
from assay.load.request import LoadPrompt, Target, check_allowed, requests_for
from assay.load.targets import KINDS, target_for, target_of_agent, with_options
from assay.load.tls import trusting
from assay.model import AgentUse
from assay.plugin.agent_pool import expand_variables

_MOST_CONNECTIONS = 10_000
_UPSTREAM = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "OLLAMA_BASE_URL")
"""Variables by which programs are told where their model is."""


@dataclass(frozen=True, slots=True)
class StressSubject:
    """What a stress test is about, and the ways in which it can be asked.

    A server is asked by the engine itself (`loaded`), anything else through its own code (`through_its_own_code`). A scenario that
    judges an agent's retries always takes its own code, with its model's address led through a proxy (`with_upstream_at`).
    """

    options: LoadOptions
    use: AgentUse | None = None
    """None where a URL was given."""
    files: tuple[str, ...] = ()
    """Python files that define what the agent needs by name."""
    data: Data | None = None
    """The data set, where one was given: what is asked and, of a suite, what is right."""

    @property
    def check(self) -> Checker | None:
        """Scores answers; None where the data set is no suite."""
        return self.data.check if self.data is not None else None

    @property
    def is_server(self) -> bool:
        """Whether the engine can speak to it by itself."""
        return self.use is None or self.use.type in KINDS

    @property
    def is_command(self) -> bool:
        return self.use is not None and self.use.type == "command"

    @property
    def most_at_once(self) -> int | None:
        """Return how many requests at a time the agent can be asked; None without a limit.

        A program needs a process for every request under way: no more than a machine can hold.
        """
        return max(8, 4 * (os.cpu_count() or 1)) if self.is_command else None

    @property
    def most_in_flight(self) -> int:
        """The maximum requests in flight of any load: the places of a worker, or half of the file descriptors."""
        if self.most_at_once is not None:
            return self.most_at_once
        return min(_MOST_CONNECTIONS, descriptors() // 2) if self.is_server else MOST_AT_ONCE

    @property
    def target(self) -> Target | None:
        if self.use is None:
            return target_for(self.options)
        return target_of_agent(self.use, self.options, os.environ) if self.is_server else None

    @property
    def takes_input(self) -> bool:
        """A plain page that is only fetched is asked nothing."""
        target, options = self.target, self.options
        is_page = target is not None and target.dialect == "http" and self.use is None
        return not is_page or bool(options.prompt or options.dataset)

    @property
    def port(self) -> int | None:
        """Return the port of a server on this machine; None for a server elsewhere."""
        parts = urlsplit(self.target.url) if self.target else None
        if parts is None or not is_loopback(parts.hostname or ""):
            return None
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def prompts(self) -> Sequence[object]:
        return prompts_of(self.options, self.data)

    @property
    def can_be_told_apart(self) -> bool:
        """Whether each request can be marked, so that one that is sent again is known from another."""
        return self.takes_input and all(isinstance(prompt, str) for prompt in self.prompts)

    def number_prompts(self, number: int) -> list[object]:
        """Return at least so many prompts, each with a mark of its own.

        Whole rounds over the prompts are returned, so that each is asked as often as the others.
        """
        own = self.prompts
        # Rounded up to whole rounds: a suite's cases are scored by their numbers modulo how many there are.
        return [mark_prompt(own[place % len(own)], place) for place in range(number + -number % len(own))]

    def loaded(
        self, prompts: Sequence[object] = (), via: str | None = None, *, is_own: bool = False
    ) -> PreparedLoad:
        """By the engine itself where it has a server, else through its own code; `via` stands before the server.

        Where the prompts are its own, in their order, answers are held against the suite.
        """
        found = self.target
        if found is None:
            return self.through_its_own_code(prompts, is_own=is_own)
        found = with_options(found, self.options)
        data = self.data if is_own or not prompts else None
        prepared = build_prepared_load(self._plain, found, data)
        if not prompts and via is None:
            return prepared
        redirected = found if via is None else replace(found, url=redirect_url(found.url, via))
        texts = prompts or (self.prompts if self.takes_input else ())
        requests = requests_for(redirected, [LoadPrompt(text) for text in texts], self.options.max_tokens)
        keeps_answers = data is not None and data.check is not None
        return replace(prepared, order=order_for(redirected, requests, keeps_answers))

    def through_its_own_code(
        self, prompts: Sequence[object] = (), use: AgentUse | None = None, *, is_own: bool = False
    ) -> PreparedLoad:
        """Build the load that calls the agent through its own code, with its own retries.

        `use` takes the place of the agent as it is defined.
        """
        agent_use = use or self.use
        assert agent_use is not None
        if (target := self.target) is not None:
            check_allowed(target.url, self.options.allow_host)
        data = self.data if is_own or not prompts else None
        found = build_prepared_agent_load(self._plain, agent_use, self.files, data)
        return replace(found, order={**found.order, "prompts": list(prompts or self.prompts)})

    @property
    def _plain(self) -> LoadOptions:
        """The data set has been read."""
        return self.options if self.data is None else replace(self.options, dataset=None)

    @property
    def trust(self) -> ssl.SSLContext | None:
        """Whom a proxy before its server has to trust: as the engine does."""
        target = self.target
        if target is None or not target.url.startswith("https://"):
            return None
        return trusting(target.ca_file, target.is_checked)

    def proxy_before(self, upstream: str) -> FaultProxy:
        """Return a proxy that reads the marks of requests and removes them before it forwards the requests."""
        return FaultProxy(upstream, seed=self.options.seed, tls=self.trust, unseen=_MARK)

    @property
    def not_through_its_own_code(self) -> str:
        """Why it cannot be asked that way; "" where it can."""
        options = self.options
        if self.use is None or not (options.header or options.insecure or options.ca_file):
            return ""
        return (
            "--header, --insecure and --ca-file do not apply, because the agent's own code sends the requests"
        )

    def upstream(self) -> str | None:
        """The address of the model behind the agent, where that can be told."""
        if self.use is None:
            return None
        if self.is_server:
            return self.target.url if self.target else None
        known = self._upstream_variables()
        return next((known[name] for name in (*_UPSTREAM, *known) if name in known), None)

    def _upstream_variables(self) -> dict[str, str]:
        given = self.use.options.get("env") if self.use else None
        configured = (
            expand_variables(dict(given), os.environ, self.use.name)
            if self.use and isinstance(given, Mapping)
            else {}
        )
        known = {**{name: os.environ[name] for name in _UPSTREAM if name in os.environ}, **configured}
        return {
            name: str(value)
            for name, value in known.items()
            if str(value).startswith(("http://", "https://")) and (name in _UPSTREAM or name in configured)
        }

    def with_upstream_at(self, via: str) -> AgentUse:
        """Return the same agent with its model at another address."""
        assert self.use is not None
        options = dict(self.use.options)
        if self.is_server:
            return replace(self.use, options=self._redirect_options(options, via))
        given = options.get("env")
        place = urlsplit(self.upstream())[:2]
        moved_all = {
            name: redirect_url(value, via)
            for name, value in self._upstream_variables().items()
            if urlsplit(value)[:2] == place
        }
        return replace(
            self.use, options={**options, "env": {**(given if isinstance(given, dict) else {}), **moved_all}}
        )

    def _redirect_options(self, options: dict[str, object], via: str) -> dict[str, object]:
        target = self.target
        assert target is not None
        assert self.use is not None
        whole = redirect_url(target.url, via)
        if self.use.type == "http":
            return {**options, "url": whole}
        return {**options, "base_url": whole.removesuffix(PROVIDERS[self.use.type].chat_path)}


_MARK = re.compile(rb"(?:\\n|\n){2}\[request \d+\]")
"""As `mark_prompt` writes it, in JSON or plain."""


def mark_prompt(prompt: object, number: int) -> object:
    """A line of its own, as an agent may read it before a proxy takes it out; what is no text stays as it is.

    >>> mark_prompt("12 + 7", 3)
    '12 + 7\\n\\n[request 3]'
    """
    return f"{prompt}\n\n[request {number}]" if isinstance(prompt, str) else prompt


def descriptors() -> int:
    """How many files and connections a process may have open: workers raise their limit that far."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 2 * _MOST_CONNECTIONS if most == resource.RLIM_INFINITY else most


def redirect_url(url: str, via: str) -> str:
    """
    >>> redirect_url("http://127.0.0.1:9000/v1/chat?x=1", "http://127.0.0.1:7777")
    'http://127.0.0.1:7777/v1/chat?x=1'
    """
    address = urlsplit(via)
    return urlsplit(url)._replace(scheme=address.scheme, netloc=address.netloc).geturl()

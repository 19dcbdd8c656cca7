"""The bytes that are sent: what a server's dialect wants to be asked, written before the load begins, with holes for what differs."""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from assay.errors import PlanError
from assay.execute.http.errors import HttpError
from assay.execute.http.request import PreparedRequest, prepare
from assay.execute.load.payload import MAX_TOKENS, MESSAGES, OPENING, PROMPT
from assay.execute.load.synthetic import OPENING_BYTES
from assay.model.conversation import as_text, is_conversation
from assay.model.secret import in_query

_SECONDS_TO_ACCEPT = 2.0
_MOST_TOKENS = 4096
"""Where nobody says how many, and the server demands a number."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a load goes and how it is spoken to. Headers may hold secrets: this is never stored."""

    url: str
    """The whole address that is asked."""
    dialect: str
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)
    system: str | None = None
    streams: bool = True
    is_checked: bool = True
    """Whether a TLS certificate has to be valid."""
    ca_file: str | None = None
    """Who may vouch for it, in the place of those whom the system trusts."""
    is_agent: bool = False
    """Whether it is asked as `assay run` asks agents; over plain HTTP they have a protocol of their own."""
    output: str | None = None
    """Where in a JSON answer over plain HTTP the output is, as in "choices.0.text"."""


@dataclass(frozen=True, slots=True)
class LoadPrompt:
    """One thing to ask: text, messages, or what else an agent takes."""

    prompt: object
    number: int = 1
    max_tokens: int | None = None
    """The most tokens of its answer, where it says so itself."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before every prompt: text that all share, and an opening that is each request's own."""

    shared: str = ""
    is_unique: bool = True

    def before(self, opening: str) -> str:
        return self.shared + (opening if self.is_unique else "")


def target_of(url: str, model: str | None, streams: bool, headers: Mapping[str, str] | None = None) -> Target:
    """By the end of the address: `…/v1` and OpenAI's endpoints, Ollama's, Anthropic's `…/messages`; others are plain HTTP."""
    parts = check_address(url)
    path = parts.path.rstrip("/")
    sent = dict(headers or {})
    if path.endswith("/v1"):
        url = parts._replace(path=f"{path}/chat/completions").geturl()
        return Target(url, "openai", model, sent, streams=streams)
    if path.endswith(("/chat/completions", "/completions", "/responses")):
        return Target(url, "openai", model, sent, streams=streams)
    if path.endswith("/embeddings"):
        return Target(url, "openai", model, sent, streams=False)
    if path.endswith("/messages"):
        return Target(url, "anthropic", model, sent, streams=streams)
    if path.endswith(("/api/generate", "/api/chat")):
        return Target(url, "ollama", model, sent, streams=streams)
    if parts.port == 11434 and not path:
        url = parts._replace(path="/api/generate").geturl()
        return Target(url, "ollama", model, sent, streams=streams)
    return Target(url, "http", model, sent, streams=False)


def check_address(url: str) -> SplitResult:
    """An address that can be asked and stored: no secret in it."""
    try:
        prepare("GET", url, {})
    except HttpError as error:
        raise PlanError(str(error)) from None
    parts = urlsplit(url)
    if in_query(url):
        raise PlanError(
            f"The URL for '{parts.hostname}' carries a secret, and it is kept with the run. "
            "Send it in a header instead: --header 'NAME: ${VARIABLE}'"
        )
    return parts


def requests_for(target: Target, asks: Iterable[LoadPrompt], max_tokens: int | None) -> list[bytes]:
    """Whole requests, as written."""
    if target.dialect == "http" and not (asks := list(asks)):
        return [_prepared("GET", target.url, dict(target.headers)).with_body(b"")]
    prepared = _posted(target)
    numbered = [replace(ask, number=number) for number, ask in enumerate(asks, 1)]
    return [prepared.with_body(_encode(body_for(target, ask, max_tokens))) for ask in numbered]


def opened_requests_for(
    target: Target, asks: Iterable[LoadPrompt], max_tokens: int | None, prefix: Prefix
) -> tuple[list[bytes], list[int]]:
    """Whole requests, and where in each of them its opening goes: what stands there is to be written over."""
    mark = secrets.token_hex(OPENING_BYTES // 2)
    opened = [with_prefix(target, ask, prefix.before(mark)) for ask in asks]
    requests = [requests_for(there, [ask], max_tokens)[0] for there, ask in opened]
    return requests, [request.index(mark.encode()) for request in requests] if prefix.is_unique else []


def with_prefix(target: Target, ask: LoadPrompt, text: str) -> tuple[Target, LoadPrompt]:
    """The same question with this text before everything else that the model reads."""
    if target.system:
        return replace(target, system=text + target.system), ask
    prompt = ask.prompt
    if isinstance(prompt, list) and is_conversation(prompt):
        first = {**prompt[0], "content": _with_text_before(prompt[0].get("content"), text)}
        return target, replace(ask, prompt=[first, *prompt[1:]])
    return target, replace(ask, prompt=text + as_text(prompt))


def _with_text_before(content: object, text: str) -> object:
    """Of a message whose content is text, or a list of parts of which some are text."""
    if isinstance(content, list):
        return [{"type": "text", "text": text}, *content]
    return text + as_text("" if content is None else content)


def _posted(target: Target) -> PreparedRequest:
    headers = {"content-type": "application/json", "accept": _accepted(target), **target.headers}
    return _prepared("POST", target.url, headers)


def head_of_requests(target: Target, *, is_get: bool = False) -> str:
    """All that stands before the content's length, or of a page that is only fetched, before the end of the head."""
    prepared = _prepared("GET", target.url, target.headers) if is_get else _posted(target)
    return prepared.head.decode("latin-1")


def template_for(
    target: Target, asks: Sequence[LoadPrompt], max_tokens: int | None, prefix: Prefix
) -> dict[str, object]:
    """Requests with holes, for loads whose requests differ in how long they are and how much is to come back.

    A body is a list: text, the name of a hole, text, and so on. `synthetic` is for requests of which only the length is
    known, `given` for the others, in turn; each of them with a bound on the tokens of the answer and without.
    """
    opening = secrets.token_hex(OPENING_BYTES // 2)
    prompt, most = secrets.token_hex(16), 10**18 + secrets.randbelow(10**18)
    holes = {opening: OPENING, prompt: PROMPT, str(most): MAX_TOKENS}

    def parts(ask: LoadPrompt, bound: int | None, before: str) -> list[str]:
        there, opened = with_prefix(target, replace(ask, max_tokens=None), before)
        return _with_holes(_json(body_for(there, opened, bound)), holes)

    # A synthetic prompt opens in its own way; only a system prompt would stand before that.
    before = prefix.before(opening) if target.system else prefix.shared
    return {
        "head": head_of_requests(target),
        "synthetic": [parts(LoadPrompt(prompt), bound, before) for bound in (most, max_tokens)],
        "given": [
            [parts(ask, bound, prefix.before(opening)) for bound in (most, ask.max_tokens or max_tokens)]
            for ask in asks
        ],
    }


def chat_template_for(target: Target, max_tokens: int | None, prefix: Prefix) -> dict[str, object]:
    """A request with a hole for its messages, for sessions in which each turn is sent with what was said before."""
    if not takes_messages(target):
        raise PlanError(
            f"Sessions of several turns need a server that is sent messages, and '{target.url}' is sent text. "
            "Give a URL that ends in /v1, /chat/completions, /responses, /messages or /api/chat."
        )
    opening, most = secrets.token_hex(OPENING_BYTES // 2), 10**18 + secrets.randbelow(10**18)
    message = {"role": "user", "content": secrets.token_hex(16)}
    there = target
    if target.system:
        there = replace(target, system=prefix.before(opening) + target.system)
    holes = {opening: OPENING, re.escape(_json(message)): MESSAGES, str(most): MAX_TOKENS}

    def parts(bound: int | None) -> list[str]:
        named = {_json(message): MESSAGES, opening: OPENING, str(most): MAX_TOKENS}
        pieces = re.split(f"({'|'.join(holes)})", _json(body_for(there, LoadPrompt([message]), bound)))
        return [named.get(piece, piece) for piece in pieces]

    return {
        "head": head_of_requests(target),
        "chat": [parts(most), parts(max_tokens)],
        "opens_first_message": prefix.is_unique and not target.system,
        "shared": "" if target.system else prefix.shared,
    }


def takes_messages(target: Target) -> bool:
    """Whether a request has room for a whole conversation."""
    path = urlsplit(target.url).path.rstrip("/")
    return target.dialect == "anthropic" or path.endswith(("/chat/completions", "/responses", "/api/chat"))


def _with_holes(body: str, holes: Mapping[str, str]) -> list[str]:
    """
    >>> _with_holes('{"input":"77"}', {"77": "prompt"})
    ['{"input":"', 'prompt', '"}']
    """
    return [holes.get(part, part) for part in re.split(f"({'|'.join(holes)})", body)]


def _prepared(method: str, url: str, headers: Mapping[str, str]) -> PreparedRequest:
    try:
        return prepare(method, url, headers)
    except HttpError as error:
        raise PlanError(str(error)) from None


def _accepted(target: Target) -> str:
    if not target.streams:
        return "application/json" if target.dialect != "http" else "*/*"
    return "application/x-ndjson" if target.dialect == "ollama" else "text/event-stream"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _encode(body: object) -> bytes:
    return _json(body).encode(errors="replace")


def body_for(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    max_tokens = ask.max_tokens or max_tokens
    match target.dialect:
        case "openai":
            return _openai(target, ask, max_tokens)
        case "ollama":
            return _ollama(target, ask, max_tokens)
        case "anthropic":
            return _anthropic(target, ask, max_tokens)
        case _ if target.is_agent:
            most = {} if max_tokens is None else {"max_tokens": max_tokens}
            return {"id": str(ask.number), "input": ask.prompt, "params": dict(target.params), **most}
        case _:
            return {"input": ask.prompt, **target.params}


def _messages(target: Target, ask: LoadPrompt, *, with_system: bool = True) -> list[Mapping[str, object]]:
    system = [{"role": "system", "content": target.system}] if target.system and with_system else []
    if isinstance(ask.prompt, list) and is_conversation(ask.prompt):
        return [*system, *ask.prompt]
    return [*system, {"role": "user", "content": as_text(ask.prompt)}]


def _openai(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    body: dict[str, object] = {"model": target.model or "default", **target.params}
    path = urlsplit(target.url).path.rstrip("/")
    if path.endswith("/embeddings"):
        return {**body, "input": as_text(ask.prompt)}
    if path.endswith("/responses"):
        return body | _responses(target, ask, max_tokens)
    if path.endswith("/chat/completions"):
        body["messages"] = _messages(target, ask)
    else:
        body["prompt"] = as_text(ask.prompt)
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    if target.streams:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _responses(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    """OpenAI's Responses API."""
    is_text = not (isinstance(ask.prompt, list) and is_conversation(ask.prompt))
    body: dict[str, object] = {"input": as_text(ask.prompt) if is_text else ask.prompt}
    if target.system:
        body["instructions"] = target.system
    if max_tokens is not None:
        body["max_output_tokens"] = max_tokens
    if target.streams:
        body["stream"] = True
    return body


def _ollama(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    options = dict(target.params)
    if max_tokens is not None:
        options["num_predict"] = max_tokens
    body: dict[str, object] = {
        "model": target.model or "default",
        "stream": target.streams,
        "options": options,
    }
    if urlsplit(target.url).path.endswith("/api/chat"):
        return {**body, "messages": _messages(target, ask)}
    system: dict[str, object] = {"system": target.system} if target.system else {}
    return {**body, **system, "prompt": as_text(ask.prompt)}


def _anthropic(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    return {
        "model": target.model or "default",
        **target.params,
        **({"system": target.system} if target.system else {}),
        "max_tokens": max_tokens or target.params.get("max_tokens") or _MOST_TOKENS,
        "messages": _messages(target, ask, with_system=False),
        "stream": target.streams,
    }


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's address, looked up once."""

    family: int
    address: Sequence[object]
    host: str
    is_tls: bool


def place_of(url: str) -> ServerAddress:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise PlanError(f"The name '{host}' is not known: {told}.") from None
    family, _, _, _, address = next((one for one in found if len(found) == 1 or _accepts(one)), found[0])
    return ServerAddress(int(family), list(address), host, parts.scheme == "https")


def _accepts(found: tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]) -> bool:
    """A name may stand for several addresses, of which a server listens at one."""
    with socket.socket(found[0], found[1]) as tried:
        tried.settimeout(_SECONDS_TO_ACCEPT)
        return tried.connect_ex(found[4]) == 0


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name; other names are not looked up, as they may lead anywhere.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("localhost"), is_loopback("example.com")
    (True, True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_allowed(url: str, allowed: Sequence[str]) -> bool:
    """Only this machine, and hosts that the user has named, are ever put under load."""
    host = urlsplit(url).hostname or ""
    return is_loopback(host) or host.lower() in {one.lower() for one in allowed}


def check_allowed(url: str, allowed: Sequence[str]) -> None:
    if is_allowed(url, allowed):
        return
    host = urlsplit(url).hostname or ""
    raise PlanError(
        f"'{host}' is not this machine, and a load may harm it. If it is yours to load: --allow-host {host}"
    )

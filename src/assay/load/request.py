"""The bytes of requests: written in a server's dialect before the load begins, with holes for what differs.

Whole requests (`requests_for`) are sent as they are. Templates (`template_for`, `chat_template_for`) are for loads whose
requests differ in length or grow from turn to turn; `payload` and `conversations` fill their holes when a request is due.
To find a hole, a body is encoded with a random marker in its place and then split at the markers, so that each dialect's
own functions write the body, so that no JSON is edited by hand.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from assay.dialects import anthropic, ollama, openai, plain
from assay.dialects.lookup import endpoint_at, takes_messages
from assay.errors import PlanError
from assay.http.errors import HttpError
from assay.http.request import PreparedRequest, is_loopback, prepare
from assay.load.payload import MAX_TOKENS, MESSAGES, OPENING, PROMPT
from assay.load.synthetic import OPENING_BYTES
from assay.model.conversation import as_text, is_conversation
from assay.model.secret import in_query

_SECONDS_TO_ACCEPT = 2.0
_ANY_MODEL = "default"
"""For servers that have one model, whatever it is called."""


@dataclass(frozen=True, slots=True)
class Target:
    """The address and protocol of a load. Headers may hold secrets, so a target is never stored."""

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


def target_of(url: str, model: str | None, streams: bool) -> Target:
    """Build the target for an address, in the dialect that the end of the address stands for."""
    parts = check_address(url)
    endpoint = endpoint_at(parts)
    return Target(endpoint.url, endpoint.dialect, model, {}, streams=streams and endpoint.can_stream)


def check_address(url: str) -> SplitResult:
    """An address that can be asked and stored: no secret in it."""
    try:
        prepare("GET", url, {})
    except HttpError as error:
        raise PlanError(str(error)) from None
    parts = urlsplit(url)
    if in_query(url):
        raise PlanError(
            f"The URL for '{parts.hostname}' contains a secret, and Assay stores the URL with the run. "
            "Send it in a header instead: --header 'NAME: ${VARIABLE}'"
        )
    return parts


def requests_for(target: Target, asks: Iterable[LoadPrompt], max_tokens: int | None) -> list[bytes]:
    """Whole requests, one for each prompt; of a plain page that is sent nothing, one GET."""
    if target.dialect == "http" and not (asks := list(asks)):
        return [_prepare_request("GET", target.url, dict(target.headers)).with_body(b"")]
    prepared = _prepare_post(target)
    numbered = [replace(ask, number=number) for number, ask in enumerate(asks, 1)]
    bodies = (_json(body_for(target, ask, max_tokens)) for ask in numbered)
    return [prepared.with_body(body.encode(errors="replace")) for body in bodies]


def build_requests_with_openings(
    target: Target, asks: Iterable[LoadPrompt], max_tokens: int | None, prefix: Prefix
) -> tuple[list[bytes], list[int]]:
    """Whole requests, and where in each of them its opening goes: what stands there is to be written over.

    The marker has the length of an opening, so that the content length is right for every request, and is random, so that it
    is found at one place only whatever the prompt says.
    """
    mark = secrets.token_hex(OPENING_BYTES // 2)
    opened = [with_prefix(target, ask, prefix.before(mark)) for ask in asks]
    requests = [requests_for(opened_target, [ask], max_tokens)[0] for opened_target, ask in opened]
    return requests, [request.index(mark.encode()) for request in requests] if prefix.is_unique else []


def with_prefix(target: Target, ask: LoadPrompt, text: str) -> tuple[Target, LoadPrompt]:
    """Return the request with this text before everything else that the model reads."""
    if target.system:
        return replace(target, system=text + target.system), ask
    prompt = ask.prompt
    if isinstance(prompt, list) and is_conversation(prompt):
        content: object = prompt[0].get("content")
        if isinstance(content, list):
            content = [{"type": "text", "text": text}, *content]
        else:
            content = text + as_text("" if content is None else content)
        return target, replace(ask, prompt=[{**prompt[0], "content": content}, *prompt[1:]])
    return target, replace(ask, prompt=text + as_text(prompt))


def _prepare_post(target: Target) -> PreparedRequest:
    """The head of a request with JSON; headers of the target come last, so that a user's own Accept or type wins."""
    if target.streams:
        accept = ollama.STREAM_TYPE if target.dialect == "ollama" else openai.STREAM_TYPE
    else:
        accept = "application/json" if target.dialect != "http" else "*/*"
    headers = {"content-type": "application/json", "accept": accept, **target.headers}
    return _prepare_request("POST", target.url, headers)


def head_of_requests(target: Target, *, is_get: bool = False) -> str:
    """All that stands before the content's length, or of a page that is only fetched, before the end of the head."""
    prepared = _prepare_request("GET", target.url, target.headers) if is_get else _prepare_post(target)
    return prepared.head.decode("latin-1")


def template_for(
    target: Target, asks: Sequence[LoadPrompt], max_tokens: int | None, prefix: Prefix
) -> dict[str, object]:
    """Requests with holes, for loads whose requests differ in how long they are and how much is to come back.

    A body is a list: text, the name of a hole, text, and so on, as in `['{"input":"', 'prompt', '"}']`. `synthetic` is for requests of which only the length is
    known, `given` for the others, in turn; each of them with a bound on the tokens of the answer and without.
    """
    # A bound is a number in JSON, so its marker is one as well: one of 19 digits, which no request asks for.
    opening = secrets.token_hex(OPENING_BYTES // 2)
    prompt, most = secrets.token_hex(16), 10**18 + secrets.randbelow(10**18)
    holes = {opening: OPENING, prompt: PROMPT, str(most): MAX_TOKENS}

    def parts(ask: LoadPrompt, bound: int | None, before: str) -> list[str]:
        prefixed_target, opened = with_prefix(target, replace(ask, max_tokens=None), before)
        pieces = re.split(f"({'|'.join(holes)})", _json(body_for(prefixed_target, opened, bound)))
        return [holes.get(piece, piece) for piece in pieces]

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
    if not takes_messages(urlsplit(target.url).path.rstrip("/"), target.dialect):
        raise PlanError(
            f"Sessions of several turns need a server that takes messages, and '{target.url}' takes text. "
            "Give a URL that ends in /v1, /chat/completions, /responses, /messages or /api/chat."
        )
    opening, most = secrets.token_hex(OPENING_BYTES // 2), 10**18 + secrets.randbelow(10**18)
    message = {"role": "user", "content": secrets.token_hex(16)}
    opened_target = target
    if target.system:
        opened_target = replace(target, system=prefix.before(opening) + target.system)
    holes = {opening: OPENING, re.escape(_json(message)): MESSAGES, str(most): MAX_TOKENS}

    def parts(bound: int | None) -> list[str]:
        named = {_json(message): MESSAGES, opening: OPENING, str(most): MAX_TOKENS}
        pieces = re.split(
            f"({'|'.join(holes)})", _json(body_for(opened_target, LoadPrompt([message]), bound))
        )
        return [named.get(piece, piece) for piece in pieces]

    return {
        "head": head_of_requests(target),
        "chat": [parts(most), parts(max_tokens)],
        "opens_first_message": prefix.is_unique and not target.system,
        "shared": "" if target.system else prefix.shared,
    }


def _prepare_request(method: str, url: str, headers: Mapping[str, str]) -> PreparedRequest:
    try:
        return prepare(method, url, headers)
    except HttpError as error:
        raise PlanError(str(error)) from None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def body_for(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    """What is asked, in the dialect of the target. An agent over plain HTTP gets the protocol of `assay run`; a URL that
    Assay does not know gets the prompt as `input`, which is as good a guess as any."""
    max_tokens = ask.max_tokens or max_tokens
    match target.dialect:
        case "openai":
            return _openai(target, ask, max_tokens)
        case "ollama":
            return _ollama(target, ask, max_tokens)
        case "anthropic":
            params = _with_limit(target.params, "max_tokens", max_tokens)
            return anthropic.chat_body(
                target.model or _ANY_MODEL, _messages(target, ask), params, streams=target.streams
            )
        case _ if target.is_agent:
            return plain.request_document(str(ask.number), ask.prompt, dict(target.params), max_tokens)
        case _:
            return {"input": ask.prompt, **target.params}


def _with_limit(params: Mapping[str, object], name: str, max_tokens: int | None) -> dict[str, object]:
    return {**params, **({} if max_tokens is None else {name: max_tokens})}


def _messages(target: Target, ask: LoadPrompt) -> list[Mapping[str, object]]:
    system = [{"role": "system", "content": target.system}] if target.system else []
    if isinstance(ask.prompt, list) and is_conversation(ask.prompt):
        return [*system, *ask.prompt]
    return [*system, {"role": "user", "content": as_text(ask.prompt)}]


def _openai(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    """One dialect, four shapes: the end of the address says whether it is embeddings, responses, chat or completions."""
    model, params, streams = target.model or _ANY_MODEL, target.params, target.streams
    path = urlsplit(target.url).path.rstrip("/")
    if path.endswith(openai.EMBEDDINGS_PATH):
        return {"model": model, **params, "input": as_text(ask.prompt)}
    if path.endswith(openai.RESPONSES_PATH):
        is_chat = isinstance(ask.prompt, list) and is_conversation(ask.prompt)
        given: Any = ask.prompt if is_chat else as_text(ask.prompt)
        return openai.response_body(
            model, given, params, system=target.system, max_tokens=max_tokens, streams=streams
        )
    params = _with_limit(params, openai.LIMIT, max_tokens)
    if path.endswith(openai.CHAT_PATH):
        return openai.chat_body(model, _messages(target, ask), params, streams=streams)
    return openai.completion_body(model, as_text(ask.prompt), params, streams=streams)


def _ollama(target: Target, ask: LoadPrompt, max_tokens: int | None) -> dict[str, object]:
    model, options = target.model or _ANY_MODEL, _with_limit(target.params, "num_predict", max_tokens)
    if urlsplit(target.url).path.endswith(ollama.CHAT_PATH):
        return ollama.chat_body(model, _messages(target, ask), options, streams=target.streams)
    return ollama.generate_body(
        model, as_text(ask.prompt), options, system=target.system, streams=target.streams
    )


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's address, looked up once."""

    family: int
    address: Sequence[object]
    host: str
    is_tls: bool


def place_of(url: str) -> ServerAddress:
    """The address of a URL's host. A name may stand for several, of which the server listens at one: the first that accepts a
    connection is taken.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlanError(f"The host '{host}' is not known: {reason}.") from None
    family, _, _, _, address = candidates[0]
    # A single address is not tried: the first connection of a worker would find out the same, and say why.
    for candidate in candidates if len(candidates) > 1 else ():
        with socket.socket(candidate[0], candidate[1]) as attempt:
            attempt.settimeout(_SECONDS_TO_ACCEPT)
            if attempt.connect_ex(candidate[4]) == 0:
                family, address = candidate[0], candidate[4]
                break
    return ServerAddress(int(family), list(address), host, parts.scheme == "https")


def is_allowed(url: str, allowed: Sequence[str]) -> bool:
    """Say whether this address may be put under load: this machine, and hosts that the user has named."""
    host = urlsplit(url).hostname or ""
    return is_loopback(host) or host.lower() in {name.lower() for name in allowed}


def check_allowed(url: str, allowed: Sequence[str]) -> None:
    """Raise PlanError for a host that is neither this machine nor allowed by the user, so that a typo cannot load a foreign server."""
    if is_allowed(url, allowed):
        return
    host = urlsplit(url).hostname or ""
    raise PlanError(
        f"'{host}' is another machine, and a load test may disrupt it. If you are authorized to test it: --allow-host {host}"
    )

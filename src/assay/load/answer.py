"""What comes back: HTTP/1.1 framing taken off as bytes arrive, and at the end the tokens found among them.

A reply keeps its payload and, for each read, the time and how far the payload then reached. Only when all of it is there is
it looked at: tokens are found by one search through the bytes, JSON is parsed only where something is decided by it. A long
answer is looked at in between, so that what is kept of it stays small.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass

from assay.dialects.usage import TokenCounts, usage_in
from assay.http.events import EVENT_STREAM
from assay.http.framing import FramingError, chunk_size
from assay.load.answer_text import LONGEST_JUDGED, judgeable, text_of
from assay.load.response_head import BadReply, ResponseHead, head_of, known_heads

LARGEST_ANSWER = 64 * 2**20
"""Maximum bytes of a stream, of which only what was found in it is kept."""
LARGEST_PIECE = 8 * 2**20
"""Maximum bytes of an answer in one piece, which has to be kept."""
_LARGEST_HEAD = 64 * 2**10
_LOOKED_AT_BEYOND = 256 * 2**10
_LONGEST_LINE = 1024
"""Maximum bytes of the line with the size of a chunk and its extensions."""

_NAMES = (
    "content", "response", "text", "delta", "reasoning_content", "reasoning", "thinking", "arguments", "refusal"
)  # fmt: skip
_PIECE = re.compile(rb'"(?:%b)": ?"(?!")' % "|".join(_NAMES).encode())
"""What stands before a piece of content, in every dialect."""
_CONTENT, _NO_CONTENT = b'"content":"', b'"content":""'
_OBJECT = b'"object":"chat.completion.chunk"'
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_DONE = b"data: [DONE]\n\n" + _LAST_CHUNK
_USAGE = b'"usage":{'
_TAIL = 2048
"""Bytes at the end of a stream among which it says that it is over, and how many tokens there were."""
_ERROR = re.compile(rb'"error"\s*:(?!\s*null)|"(?:type|object)"\s*:\s*"error"')
_OVER = re.compile(rb'"finish_reason"\s*:\s*"|"done"\s*:\s*true|"message_stop"|"output"\s*:')
_RESPONSES = re.compile(rb'"type": ?"response\.')
"""In every event of OpenAI's Responses API, which says whole texts again when they are done: only deltas are new content."""
_DELTA = re.compile(rb'"delta": ?"(?!")')
_RESPONSE_OVER = re.compile(rb'"type": ?"response\.(?:completed|incomplete)"')
_FIELD = re.compile(rb"\s*(?:(?:data|event|id|retry)?:)")
PlainCounts = tuple[int, TokenCounts]
"""Pieces of content that came in one read, and what the server counted."""


class Trust:
    """How closely answers are looked at: the first of a server all, later one in 128; once one was not in order, all.

    What is left out for the others is only what servers do not do now and then: whether the sizes of chunks add up, whether
    objects that end as they should are JSON in between, and whether pieces come under any other name than `content`.
    """

    __slots__ = ("_is_gone", "_seen")
    _FIRST, _EVERY = 200, 128

    def __init__(self) -> None:
        self._seen = 0
        self._is_gone = False

    def wants_a_close_look(self) -> bool:
        self._seen += 1
        return self._is_gone or self._seen <= self._FIRST or self._seen % self._EVERY == 0

    def lose(self) -> None:
        self._is_gone = True


class Reply:
    """One answer while it arrives; looked at less closely when the server is known to be in order.

    `feed` takes the framing off and keeps the payload, with the time of every read beside it. There are two ways through it. An
    answer that comes whole in its first read, and in chunks, stays as it is in `_framed`: `plain_counts` finds all that a
    report needs by searching those bytes. Any other is unchunked into `_pieces`, and `tokens` parses it at the end. Of a long
    stream `_look_early` parses what has come so far and forgets it, so `_gone` bytes are no longer there, and positions in
    `reach` count from the beginning of the payload all the same.
    """

    __slots__ = (
        "_early", "_framed", "_gone", "_is_close_look", "_kept", "_left", "_pieces", "_rest", "_texts",
        "_trails", "head", "reach", "reads",
    )  # fmt: skip

    def __init__(self, is_close_look: bool = True, keeps_text: bool = False) -> None:
        self._is_close_look = is_close_look
        self._texts: list[str] | None = [] if keeps_text else None
        """What the parts say that are gone, if that is to be judged."""
        self.head: ResponseHead | None = None
        self.reads: list[float] = []
        """When each read arrived."""
        self.reach: list[int] = []
        """How far the payload reached after it."""
        self._pieces: list[bytes] = []
        self._rest = b""
        self._left = 0
        self._trails = False
        self._kept = 0
        self._gone = 0
        self._early: Tokens | None = None
        self._framed = b""
        """An answer that came whole in one read, still in its chunks: mostly it is not needed without them."""

    @property
    def has_begun(self) -> bool:
        return self.head is not None or bool(self._rest)

    def feed(self, data: bytes, at: float) -> bool:
        """Take what one read brought, and when; returns whether the reply is whole with this. Raises BadReply."""
        head = self.head
        if head is None:
            begin = self._begin(data)
            if begin is None:
                return False
            data, head = begin
            if (
                head.is_chunked
                and data.endswith(_LAST_CHUNK)
                and (not self._is_close_look or are_all_chunks(data))
            ):
                self._framed = data
                self.reads.append(at)
                return True
        # A read that brought only framing, as the last chunk alone, is no arrival of content.
        before = self._kept
        is_whole = self._unchunk(data) if head.is_chunked else self._plain(data, head)
        if self._kept > before:
            self.reads.append(at)
            self.reach.append(self._kept)
            if self._kept - self._gone > _LOOKED_AT_BEYOND:
                self._look_early()
        return is_whole

    def _begin(self, data: bytes) -> tuple[bytes, ResponseHead] | None:
        """The head and what follows it, once it has all come; interim heads (100 Continue) are skipped."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        at = 0
        while (end := data.find(b"\r\n\r\n", at)) >= 0:
            text = data[at : end + 2]
            head = known_heads.get(text) or head_of(text)
            at = end + 4
            if not 100 <= head.status < 200:
                self.head = head
                return data[at:], head
        # The first bytes tell whether this is HTTP at all: a server that speaks something else need not be waited for.
        if len(data) - at > _LARGEST_HEAD or not b"HTTP/1.".startswith(data[at : at + 7]):
            raise BadReply("malformed_http")
        self._rest = data[at:]
        return None

    def _plain(self, data: bytes, head: ResponseHead) -> bool:
        """Read a body that is not chunked; returns whether it is complete.

        It goes up to the length that the head gives, or until the connection is closed.
        """
        self._keep(data)
        if head.length is None:
            return head.status in (204, 304)
        if self._kept > head.length:
            raise BadReply("malformed_http")
        return self._kept == head.length

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._kept += len(piece)
        if self._kept - self._gone > LARGEST_PIECE or self._kept > LARGEST_ANSWER:
            raise BadReply("too_large")

    def _unchunk(self, data: bytes) -> bool:
        """`_left` counts what is missing of the chunk at hand, its line end included."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        pieces: list[bytes] = []
        at = self._take_chunks(data, pieces)
        if pieces:
            self._keep(b"".join(pieces))
        return self._trails and self._has_trailed(data[at:])

    def _take_chunks(self, data: bytes, pieces: list[bytes]) -> int:
        """Append the contents of the chunks in the data to `pieces`; returns where the trailers begin, or the end.

        A chunk may be cut anywhere, also within its line end, so the two bytes of that are counted as part of it and left out
        of the content. Local names in the place of attributes: this loop runs once for every token.
        """
        at, end, left = 0, len(data), self._left
        while at < end and not self._trails:
            if not left:
                line = data.find(b"\r\n", at)
                if line < 0:
                    self._rest = data[at:]
                    if len(self._rest) > _LONGEST_LINE:
                        raise BadReply("malformed_http")
                    break
                left = _chunk_size(data[at:line]) + 2
                self._trails = left == 2
                at = line if self._trails else line + 2
                continue
            stop = at + left
            if left > 2:
                pieces.append(data[at : stop - 2])
            left = stop - end if stop > end else 0
            at = stop
        self._left = left
        return at

    def _has_trailed(self, data: bytes) -> bool:
        """Whether the trailers after the last chunk are over; bytes after them belong to no answer that we asked for."""
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            if end + 4 < len(data):
                raise BadReply("malformed_http")
            return True
        if len(data) > _LARGEST_HEAD:
            raise BadReply("malformed_http")
        self._rest = data
        return False

    def is_whole_at_close(self) -> bool:
        head = self.head
        return head is not None and head.ends_at_close

    @property
    def payload(self) -> bytes:
        """What is still kept of it."""
        if self._framed:
            framed, self._framed = self._framed, b""
            self._unchunk(framed)
            self.reach.append(self._kept)
        return b"".join(self._pieces)

    def _look_early(self) -> None:
        """Parse the whole lines that have come and forget them; the rest of the last line stays for the next look."""
        head = self.head
        if head is None or not head.is_streamed:
            return
        text = self.payload
        cut = text.rfind(b"\n") + 1
        if not cut:
            return
        self._early = self._tokens(text[:cut])
        if self._texts is not None:
            self._keep_text(text[:cut])
        self._pieces = [text[cut:]]
        self._gone += cut
        seen = bisect_right(self.reach, self._gone)
        del self.reads[:seen], self.reach[:seen]

    def _keep_text(self, part: bytes) -> None:
        assert self._texts is not None
        # One piece too many tells that it is too long, and no more of it has to be kept.
        if sum(map(len, self._texts)) <= LONGEST_JUDGED:
            self._texts.append(text_of(part.decode("utf-8", "replace")))

    def to_be_judged(self) -> str:
        """Return what scorers are to judge of a complete answer.

        It is the body as it came for `text_of` to read, or what it says if it is long.
        """
        rest = self.payload.decode("utf-8", "replace")
        if not self._texts and len(rest) <= _LOOKED_AT_BEYOND:
            return rest
        return judgeable("".join((*(self._texts or ()), text_of(rest))))

    def _tokens(self, text: bytes) -> Tokens:
        tokens = self._early or Tokens([])
        return tokens.with_more(text, self.reads, self.reach, self._gone)

    def plain_counts(self) -> PlainCounts | None:
        """Count the tokens of a simple streamed answer the quick way.

        None unless the answer is complete, as simple as most are, and not to be looked at closely.
        """
        return _plain_counts(self._framed) if self._framed and not self._is_close_look else None

    def tokens(self) -> Tokens:
        """Count the tokens of a complete streamed answer.

        Raises BadReply if it is not what was asked for.
        """
        plain = _plain_counts(self._framed) if self._framed else None
        if plain is not None and not self._is_close_look:
            pieces, (output, given, cached) = plain
            return Tokens(self.reads * pieces, output, given, cached, True)
        found = self._parse_tokens()
        found.is_plain = plain in (None, (len(found.stamps), (found.output, found.input, found.cached)))
        return found

    def _parse_tokens(self) -> Tokens:
        text = self.payload
        found = self._tokens(text)
        if found.is_error:
            raise BadReply("error_in_stream")
        if not found.stamps:
            raise BadReply("malformed_stream" if not found.is_over else "empty")
        if not found.is_over:
            raise BadReply("incomplete")
        _check_lines(text, self.head)
        return found


def are_all_chunks(data: bytes) -> bool:
    """Whether these are chunks up to the last one, and nothing else.

    >>> are_all_chunks(b"2\\r\\nab\\r\\n0\\r\\n\\r\\n"), are_all_chunks(b"2\\r\\nab\\r\\n0\\r\\n")
    (True, False)
    """
    find, at, end = data.find, 0, len(data)
    while at < end:
        line = find(b"\r\n", at)
        try:
            size = int(data[at:line], 16)
        except ValueError:
            return False
        if size <= 0:
            return size == 0 and line + 4 == end
        at = line + size + 4
    return False


def _plain_counts(text: bytes) -> PlainCounts | None:
    """Count the pieces of the most common kind of answer, by counting alone; None when anything about it is unusual.

    All of its objects but three at the most (role, reason to finish, usage) bring content, and what comes after the last
    content tells that it is over, how many tokens there were, and an error if there was one. Most of the time that an answer
    takes here goes into these searches; from the right they take a third as long.
    """
    pieces = text.count(_CONTENT)
    empty = text.rfind(_NO_CONTENT)
    if empty >= 0:
        pieces -= 1 if text.find(_NO_CONTENT, 0, empty + 1) < 0 else text.count(_NO_CONTENT)
    if not 0 < pieces <= text.count(_OBJECT) <= pieces + 3:
        return None
    last = text.rfind(_CONTENT)
    if not text.endswith(_DONE) and text.find(b"[DONE]", last) < 0:
        return None
    if text.rfind(b'"error"') >= 0:
        return None
    place = text.find(_USAGE, last)
    tail = text[place if place >= 0 else last :]
    usage = _usages.get(tail) or _usage_at_end(tail)
    return None if usage is None else (pieces, usage)


_usages: dict[bytes, TokenCounts] = {}


def _usage_at_end(tail: bytes) -> TokenCounts | None:
    """Answers to a load often end alike, so that each ending is taken apart once. None when a chunk ends in the middle of it, where
    half of a number would be read as the whole.
    """
    if not tail.startswith(_USAGE):
        return None if b"tokens" in tail else (None, None, None)
    if b"\r\n" in tail[: tail.find(b"\n\n")]:
        return None
    if len(_usages) > 256:
        _usages.clear()
    found = _usages[tail] = usage_in(tail)
    return found


def _chunk_size(line: bytes) -> int:
    try:
        return chunk_size(line)
    except FramingError:
        raise BadReply("malformed_http") from None


@dataclass(slots=True)
class Tokens:
    """Pieces of content that a stream brought, by the time of the read that brought the first byte of each."""

    stamps: list[float]
    output: int | None = None
    input: int | None = None
    cached: int | None = None
    is_over: bool = False
    is_error: bool = False
    is_plain: bool = True
    """Whether counting alone would have found the same, as far as it can tell."""

    def with_more(self, text: bytes, reads: list[float], reach: list[int], offset: int) -> Tokens:
        """Add what a further part of a stream brought. `reach` says where each read ended, `offset` where this part begins.

        Usage is told at the end by most servers, and at the beginning by Anthropic for the input, so both ends are searched.
        """
        if len(reads) == 1:
            self.stamps.extend(reads * _pieces_in(text))
        else:
            ends = _ends(text)
            last = len(reads) - 1
            self.stamps.extend([reads[min(bisect_right(reach, end + offset), last)] for end in ends])
        self.is_error = self.is_error or (b'"error"' in text and _tells_error(text))
        # From the last line that is not empty, at the latest: Ollama's last may be longer than any tail.
        last_line = text.rfind(b"\n", 0, len(text.rstrip())) + 1
        tail = text[min(max(0, len(text) - _TAIL), last_line) :]
        output, given, cached = usage_in(tail)
        if output is not None:
            self.output = output
        if given is None and self.input is None:
            _, given, cached = usage_in(text[:_TAIL])
        if given is not None:
            self.input, self.cached = given, cached
        over = _RESPONSE_OVER if _is_responses(text) else _OVER
        self.is_over = self.is_over or b"[DONE]" in tail or over.search(tail) is not None
        return self


def _tells_error(text: bytes) -> bool:
    """Whether an object in a line of its own, not a part of one, is an error."""
    for found in _ERROR.finditer(text):
        line = _line_at(text, found.start())
        try:
            document = _decode(line[max(0, line.find(b"{")) :].decode().strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and (
            document.get("error")
            or "error" in (document.get("type"), document.get("object"))
            or document.get("type") == "response.failed"
        ):
            return True
    return False


def _ends(text: bytes) -> list[int]:
    """Find the pieces of content in a stream that are not empty."""
    if _is_responses(text):
        return [piece.end() for piece in _DELTA.finditer(text)]
    ends = [piece.end() for piece in _PIECE.finditer(text)]
    return _merge_ends_of_a_line(text, ends) if _may_share_a_line(text, len(ends)) else ends


def _pieces_in(text: bytes) -> int:
    """How many there are, where it does not matter at which place."""
    if _is_responses(text):
        return len(_DELTA.findall(text))
    pieces = len(_PIECE.findall(text))
    return len(_ends(text)) if _may_share_a_line(text, pieces) else pieces


def _is_responses(text: bytes) -> bool:
    """Say whether this is a stream of the Responses API.

    The first event decides, since each part of a stream begins at the start of a line.
    """
    return _RESPONSES.search(text, 0, 256) is not None


def _may_share_a_line(text: bytes, pieces: int) -> bool:
    """Whether a line may hold several: of choices, or thoughts that a server gives under two names.

    A cheap question before `_merge_ends_of_a_line`, which walks through all pieces; in server-sent events every piece has two line ends.
    """
    return (
        b'"index":1' in text
        or b'"reasoning' in text
        or b'"index": 1' in text
        or 2 * pieces > text.count(b"\n")
    )


def _merge_ends_of_a_line(text: bytes, ends: list[int]) -> list[int]:
    """One line may say the same content under two names, or that of several choices: it is one piece."""
    kept = ends[:1]
    for end in ends[1:]:
        if text.find(b"\n", kept[-1], end) >= 0:
            kept.append(end)
    return kept


def _check_lines(text: bytes, head: ResponseHead | None) -> None:
    """The first line that holds an object and the last must be what they claim to be."""
    is_sse = head is not None and head.type == EVENT_STREAM
    if is_sse and text.strip() and not _FIELD.match(text):
        raise BadReply("malformed_stream")
    places = (text.find(b"{"), text.rfind(b"}"))
    for line in [_line_at(text, place) for place in places if place >= 0]:
        try:
            _decode((line.partition(b":")[2] if is_sse else line).decode().strip())
        except (ValueError, RecursionError):
            raise BadReply("malformed_stream") from None


_decode = json.JSONDecoder().decode


def _line_at(text: bytes, place: int) -> bytes:
    end = text.find(b"\n", place)
    return text[text.rfind(b"\n", 0, place) + 1 : end if end >= 0 else len(text)]


def check_document(text: bytes) -> None:
    """Raises BadReply when an answer in one piece is no JSON object, an error, or without any choice."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadReply("malformed_json") from None
    if not isinstance(document, dict):
        raise BadReply("malformed_json")
    if document.get("error") or "error" in (document.get("type"), document.get("object")):
        raise BadReply("error_in_answer")
    if document.get("choices") == [] or document.get("data") == []:
        raise BadReply("empty")
    if document.get("object") == "response" and document.get("status") == "failed":
        raise BadReply("error_in_answer")

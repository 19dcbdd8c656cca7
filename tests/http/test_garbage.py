"""Servers that break the rules: each fault has its name, and none hangs or hurts the next request."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable

import pytest
from tests.http.raw_server import always, raw_server

from assay.http.client import HttpClient
from assay.http.errors import BadResponse, Disconnected, HttpError, ResponseTooLarge

COMPRESSED = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def fault_of(reply: bytes, *, closes: bool = False, max_bytes: int = 1_000_000) -> HttpError:
    """What the client says to such an answer."""

    async def scene() -> HttpError:
        async with (
            raw_server(always(reply, closes=closes)) as server,
            HttpClient(max_response_bytes=max_bytes) as client,
            asyncio.timeout(60),
        ):
            with pytest.raises(HttpError) as fault:
                await client.request("GET", server.url)
        return fault.value

    return asyncio.run(scene())


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not a status line"),
        (b"HTTP/1.1 abc\r\n\r\n", "not a status line"),
        (b"HTTP/2 200\r\n\r\n", "not a status line"),
        (b"\r\n\r\n", "not a status line"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\nname : value\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\na: 1\r\n folded\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n", "not a content length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3, 4\r\n\r\nabcd", "not a content length"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "transfer encoding 'gzip'"),
        (COMPRESSED + b"content-length: 5\r\n\r\nplain", "not compressed as its head says"),
        (
            COMPRESSED + b"content-length: 12\r\n\r\n" + gzip.compress(b"cut off", mtime=0)[:12],
            "body is not complete",
        ),
        (COMPRESSED.replace(b"gzip", b"br") + b"content-length: 1\r\n\r\nx", "content encoding 'br'"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "a different protocol"),
        (CHUNKED + b"xyz\r\nabc\r\n", "not the size of a chunk"),
        (CHUNKED + b"-1\r\nabc\r\n", "not the size of a chunk"),
        (CHUNKED + b"\r\n", "not the size of a chunk"),
        (CHUNKED + b"3\r\nabcdef\r\n", "longer than its size"),
        (CHUNKED + b"1" * 10_000, "size does not end"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: 1\r\n" * 20_000, "head is longer"),
        (b"no line ends here" * 10_000, "head is longer"),
    ],
)
def test_what_is_not_http_is_a_bad_response(reply: bytes, complaint: str) -> None:
    fault = fault_of(reply)

    assert type(fault) is BadResponse
    assert complaint in str(fault)


@pytest.mark.parametrize(
    ("reply", "status", "received"),
    [
        (b"", None, b""),
        (b"HTTP/1.1 200 OK\r\ncontent-le", None, b""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", 200, b"abc"),
        (CHUNKED + b"5\r\nab", 200, b"ab"),
        (CHUNKED + b"5\r\nabcde\r\n", 200, b"abcde"),
        (CHUNKED + b"5\r\nabcde\r\n0\r\n", 200, b"abcde"),
    ],
)
def test_an_answer_cut_short_is_a_disconnection_with_what_had_come(
    reply: bytes, status: int | None, received: bytes
) -> None:
    fault = fault_of(reply, closes=True)

    assert isinstance(fault, Disconnected)
    assert (fault.status, fault.received) == (status, received)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000,
        CHUNKED + b"1F4\r\n" + b"x" * 500 + b"\r\n1F5\r\n" + b"x" * 501 + b"\r\n",
    ],
    ids=["announced", "without a length", "in chunks"],
)
def test_an_answer_beyond_the_bound_is_not_held(reply: bytes) -> None:
    assert type(fault_of(reply, max_bytes=1000)) is ResponseTooLarge


def test_an_endless_answer_ends_at_the_bound() -> None:
    async def endless(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async def scene() -> None:
        async with (
            raw_server(endless) as server,
            HttpClient(max_response_bytes=300_000) as client,
            client.stream("GET", server.url) as stream,
            asyncio.timeout(60),
        ):
            with pytest.raises(ResponseTooLarge):
                await stream.end()
        assert sum(len(piece.data) for piece in stream.arrived) <= 300_000

    asyncio.run(scene())


def test_after_a_fault_the_next_request_is_served_as_if_nothing_had_been() -> None:
    async def talk(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"garbage\r\n\r\n" if number == 1 else b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def scene() -> None:
        async with raw_server(talk) as server, HttpClient(max_connections=1) as client:
            with pytest.raises(BadResponse):
                await client.request("GET", server.url)
            assert (await client.request("GET", server.url)).body == b"ok"

    asyncio.run(scene())


def test_bytes_that_nobody_asked_for_do_not_become_the_next_answer() -> None:
    said_more = asyncio.Event()

    async def talk(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        if number == 1:
            await asyncio.sleep(0.02)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
            said_more.set()

    async def scene() -> None:
        async with raw_server(talk) as server, HttpClient() as client:
            await client.request("GET", server.url)
            await said_more.wait()
            await asyncio.sleep(0.02)
            assert (await client.request("GET", server.url)).body == b"ok"

    asyncio.run(scene())


@pytest.mark.parametrize("body", [b"not json", b"\xff\xfe\xfd", b""])
def test_a_body_that_is_not_json_is_a_bad_response(body: bytes) -> None:
    async def scene() -> None:
        reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        async with raw_server(always(reply)) as server, HttpClient() as client:
            response = await client.request("GET", server.url)
        with pytest.raises(BadResponse, match="not JSON"):
            response.json()

    asyncio.run(scene())


@pytest.mark.parametrize("framing", ["length", "chunked", "until close"])
@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_an_answer_that_is_compressed_unasked_is_read(
    framing: str, compress: Callable[[bytes], bytes]
) -> None:
    text = b"a long answer " * 5000
    # In two members, each compressed on its own, as some servers flush a stream.
    packed = compress(text[:7000]) + compress(text[7000:])
    start = COMPRESSED if compress is gzip.compress else COMPRESSED.replace(b"gzip", b"deflate")
    reply = {
        "length": start + b"content-length: %d\r\n\r\n%b" % (len(packed), packed),
        "chunked": start + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(packed), packed),
        "until close": start + b"\r\n" + packed,
    }[framing]

    async def scene() -> bytes:
        async with (
            raw_server(always(reply, closes=framing == "until close")) as server,
            HttpClient() as client,
        ):
            return (await client.request("GET", server.url)).body

    assert asyncio.run(scene()) == text


def test_a_compressed_answer_that_is_cut_off_is_a_fault() -> None:
    packed = gzip.compress(b"a long answer " * 5000)
    assert isinstance(fault_of(COMPRESSED + b"\r\n" + packed[:-20], closes=True), Disconnected)


def test_a_bomb_is_not_unpacked() -> None:
    packed = gzip.compress(bytes(50_000_000))
    reply = COMPRESSED + b"content-length: %d\r\n\r\n%b" % (len(packed), packed)
    assert isinstance(fault_of(reply), ResponseTooLarge)

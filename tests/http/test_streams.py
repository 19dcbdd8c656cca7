from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter

import pytest
from tests.http.parsing import parse_stream
from tests.http.raw_server import OK, always, raw_server

from assay.http.client import HttpClient, Stream
from assay.http.errors import BadResponse, Disconnected
from assay.http.events import NdjsonParser, Piece, SseParser

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def three_chunks(writer: asyncio.StreamWriter, number: int) -> None:
    writer.write(HEAD)
    for piece in (b"one", b"two", b"three"):
        await asyncio.sleep(0.02)
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    writer.write(b"0\r\n\r\n")


def test_pieces_come_as_they_were_sent_each_with_its_time() -> None:
    async def scene() -> None:
        before = perf_counter()
        async with (
            raw_server(three_chunks) as server,
            HttpClient() as client,
            client.stream("GET", server.url) as stream,
        ):
            assert stream.status == 200
            assert stream.ended == 0
            pieces = [piece async for piece in stream.pieces()]
            after = perf_counter()
        assert b"".join(piece.data for piece in pieces) == b"onetwothree"
        times = [before, stream.started, stream.sent, stream.first_byte, *(piece.at for piece in pieces)]
        times += [stream.ended, after]
        assert times == sorted(times)
        assert pieces[-1].at - stream.sent > 0.055

    asyncio.run(scene())


def test_pieces_read_at_the_end_carry_the_times_of_their_arrival() -> None:
    streams: list[Stream] = []

    async def one_by_one(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(HEAD)
        for place, piece in enumerate((b"one", b"two", b"three"), 1):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            while not streams or len(streams[0].arrived) < place:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
        writer.write(b"0\r\n\r\n")

    async def scene() -> None:
        async with (
            raw_server(one_by_one) as server,
            HttpClient() as client,
            client.stream("GET", server.url) as stream,
        ):
            streams.append(stream)
            pieces = await stream.end()
        assert pieces[-1].at - pieces[0].at > 0.035
        assert stream.ended >= pieces[-1].at

    asyncio.run(scene())


def test_a_stream_read_to_its_end_leaves_its_connection_to_the_next() -> None:
    async def scene() -> None:
        async with raw_server(three_chunks) as server, HttpClient() as client:
            for _ in range(2):
                async with client.stream("GET", server.url) as stream:
                    assert await stream.read() == b"onetwothree"
        assert server.connections == 1

    asyncio.run(scene())


def test_a_stream_left_half_way_is_hung_up_on() -> None:
    async def scene() -> None:
        async with raw_server(three_chunks) as server, HttpClient() as client:
            for _ in range(2):
                async with client.stream("GET", server.url) as stream:
                    async for _ in stream.pieces():
                        break
        assert server.connections == 2

    asyncio.run(scene())


def test_a_stream_that_is_cut_off_gives_what_came_and_then_says_so() -> None:
    async def scene() -> None:
        reply = HEAD + b"5\r\nfirst\r\n6\r\nsec"
        async with raw_server(always(reply, closes=True)) as server, HttpClient() as client:
            seen: list[bytes] = []

            async def read(stream: Stream) -> None:
                async for piece in stream.pieces():
                    seen.append(piece.data)

            async with client.stream("GET", server.url) as stream:
                with pytest.raises(Disconnected, match="after 8 bytes") as cut:
                    await read(stream)
        assert b"".join(seen) == b"firstsec"
        assert (cut.value.status, cut.value.received) == (200, b"firstsec")

    asyncio.run(scene())


def test_a_cancelled_stream_takes_its_connection_with_it() -> None:
    async def give_up(client: HttpClient, url: str) -> None:
        async with asyncio.timeout(None) as patience, client.stream("GET", url) as stream:
            patience.reschedule(0)
            await stream.end()

    async def scene() -> None:
        async with raw_server(three_chunks) as server, HttpClient(max_connections=1) as client:
            with pytest.raises(TimeoutError):
                await give_up(client, server.url)
            async with client.stream("GET", server.url) as stream:
                assert await stream.read() == b"onetwothree"
        assert server.connections == 2

    asyncio.run(scene())


def test_a_stale_connection_is_replaced_for_a_stream_too() -> None:
    async def scene() -> None:
        async with raw_server(always(OK, closes=True)) as server, HttpClient() as client:
            for _ in range(3):
                async with client.stream("GET", server.url) as stream:
                    assert await stream.read() == b"ok"

    asyncio.run(scene())


def test_events_come_out_of_a_stream_while_it_runs() -> None:
    seen = asyncio.Event()

    async def talk(writer: asyncio.StreamWriter, number: int) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for piece in (b"data: gr\xc3", b"\xbc\xc3\x9f\n", b"\nevent: end\ndata: bye"):
            writer.write(piece)
            await seen.wait()
            seen.clear()
            await asyncio.sleep(0.02)
        return False

    async def watched(stream: Stream) -> AsyncIterator[Piece]:
        async for piece in stream.pieces():
            seen.set()
            yield piece

    async def scene() -> None:
        async with (
            raw_server(talk) as server,
            HttpClient() as client,
            client.stream("GET", server.url) as stream,
        ):
            events = [event async for event in parse_stream(watched(stream), SseParser())]
        assert [(event.event, event.data) for event in events] == [("message", "grüß"), ("end", "bye")]
        assert events[0].at == stream.first_byte
        assert events[1].at - events[0].at > 0.035

    asyncio.run(scene())


def test_lines_come_out_of_a_stream() -> None:
    async def scene() -> None:
        reply = b'HTTP/1.1 200 OK\r\n\r\n{"a": 1}\n\r\n{"b": 2}\r\n{"c": 3}'
        async with (
            raw_server(always(reply, closes=True)) as server,
            HttpClient() as client,
            client.stream("GET", server.url) as stream,
        ):
            lines = [line.text.strip() async for line in parse_stream(stream.pieces(), NdjsonParser())]
        assert lines == ['{"a": 1}', '{"b": 2}', '{"c": 3}']

    asyncio.run(scene())


def test_text_that_is_not_utf8_is_a_bad_response() -> None:
    async def scene() -> None:
        reply = b"HTTP/1.1 200 OK\r\n\r\ndata: \xff\xfe\n\n"
        async with (
            raw_server(always(reply, closes=True)) as server,
            HttpClient() as client,
            client.stream("GET", server.url) as stream,
        ):
            with pytest.raises(BadResponse, match="not UTF-8"):
                [event async for event in parse_stream(stream.pieces(), SseParser())]

    asyncio.run(scene())

from __future__ import annotations

import asyncio

import pytest
from tests.http.raw_server import OK, always, raw_server

from assay.http.client import HttpClient
from assay.http.errors import BadRequest, ConnectFailed, Disconnected


def test_a_post_brings_status_headers_and_body() -> None:
    async def scene() -> None:
        reply = b"HTTP/1.1 418 Teapot\r\nX-One: 1\r\nx-two: 2\r\nX-TWO: 3\r\ncontent-length: 5\r\n\r\nshort"
        async with raw_server(always(reply)) as server, HttpClient() as client:
            response = await client.request("POST", server.url, b"{}", {"x-given": "yes"})

        assert (response.status, response.body) == (418, b"short")
        assert (response.headers["x-one"], response.headers["x-two"]) == ("1", "2, 3")
        assert server.requests[0].startswith(b"POST / HTTP/1.1\r\nhost: 127.0.0.1:")
        assert b"x-given: yes\r\n" in server.requests[0]
        assert server.requests[0].endswith(b"content-length: 2\r\n\r\n{}")

    asyncio.run(scene())


def test_a_connection_is_used_again() -> None:
    async def scene() -> None:
        async with raw_server(always(OK)) as server, HttpClient() as client:
            for _ in range(5):
                assert (await client.request("GET", server.url)).body == b"ok"
        assert (server.connections, len(server.requests)) == (1, 5)

    asyncio.run(scene())


def test_there_are_never_more_connections_than_allowed_and_everyone_is_served() -> None:
    async def slowly(writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(0.005)
        writer.write(OK)

    async def scene() -> None:
        async with raw_server(slowly) as server, HttpClient(max_connections=3) as client:
            responses = await asyncio.gather(*(client.request("GET", server.url) for _ in range(20)))
        assert [response.status for response in responses] == [200] * 20
        assert server.most_open == 3

    asyncio.run(scene())


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", id="says close"),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", id="HTTP/1.0"),
        pytest.param(OK + b"and more", id="more than announced"),
    ],
)
def test_a_connection_that_cannot_be_trusted_again_is_given_up(reply: bytes) -> None:
    async def scene() -> None:
        async with raw_server(always(reply)) as server, HttpClient() as client:
            for _ in range(2):
                assert (await client.request("GET", server.url)).body == b"ok"
        assert server.connections == 2

    asyncio.run(scene())


def test_a_kept_connection_that_went_stale_is_replaced_without_a_word() -> None:
    async def scene() -> None:
        async with raw_server(always(OK, closes=True)) as server, HttpClient() as client:
            for _ in range(3):
                assert (await client.request("GET", server.url)).body == b"ok"
        assert server.connections == 3

    asyncio.run(scene())


def test_a_request_is_sent_a_second_time_only_once_and_only_after_a_kept_connection() -> None:
    async def only_the_first(writer: asyncio.StreamWriter, number: int) -> bool:
        if number == 1:
            writer.write(OK)
        return number == 1

    async def scene() -> None:
        async with raw_server(only_the_first) as server, HttpClient() as client:
            await client.request("GET", server.url)
            with pytest.raises(Disconnected, match="before it answered"):
                await client.request("GET", server.url)
            assert len(server.requests) == 3
            with pytest.raises(Disconnected):
                await client.request("GET", server.url)
            assert len(server.requests) == 4

    asyncio.run(scene())


def test_a_cancelled_request_takes_its_connection_with_it() -> None:
    asked = asyncio.Event()

    async def first_one_late(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            asked.set()
            await asyncio.sleep(0.05)
            writer.write(OK.replace(b"ok", b"no"))
        else:
            writer.write(OK)

    async def scene() -> None:
        async with raw_server(first_one_late) as server, HttpClient(max_connections=1) as client:
            asking = asyncio.create_task(client.request("GET", server.url))
            await asked.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (await client.request("GET", server.url)).body == b"ok"
            await asyncio.sleep(0.06)
            assert (await client.request("GET", server.url)).body == b"ok"

    asyncio.run(scene())


def test_giving_up_the_wait_for_a_connection_harms_nobody() -> None:
    async def slowly(writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(0.03)
        writer.write(OK)

    async def scene() -> None:
        async with raw_server(slowly) as server, HttpClient(max_connections=1) as client:
            asked = [asyncio.create_task(client.request("GET", server.url)) for _ in range(4)]
            await asyncio.sleep(0.01)
            asked[1].cancel()
            asked[2].cancel()
            ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in ended] == [False, True, True, False]
        assert len(server.requests) == 2

    asyncio.run(scene())


def test_a_redirect_is_returned_not_followed() -> None:
    async def scene() -> None:
        reply = b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
        async with raw_server(always(reply)) as server, HttpClient() as client:
            response = await client.request("GET", server.url)
        assert (response.status, response.headers["location"]) == (302, "/elsewhere")
        assert len(server.requests) == 1

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", id="no content"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok", id="after an interim answer"),
        pytest.param(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", b"ok", id="no reason phrase"),
        pytest.param(b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", b"ok", id="bare newlines"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok", b"ok", id="said twice, alike"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            b"3;name=x\r\nabc\r\n0A\r\n0123456789\r\n0\r\ntrailer: 1\r\n\r\n",
            b"abc0123456789",
            id="chunks with an extension and a trailer",
        ),
    ],
)
@pytest.mark.parametrize("is_dribbled", [False, True], ids=["at once", "byte by byte"])
def test_every_way_to_frame_an_answer_is_understood(reply: bytes, body: bytes, is_dribbled: bool) -> None:
    async def talk(writer: asyncio.StreamWriter, number: int) -> None:
        for piece in [reply[n : n + 1] for n in range(len(reply))] if is_dribbled else [reply]:
            writer.write(piece)
            await asyncio.sleep(0)

    async def scene() -> None:
        async with raw_server(talk) as server, HttpClient() as client:
            for _ in range(2):
                assert (await client.request("GET", server.url)).body == body
        assert server.connections == 1

    asyncio.run(scene())


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def scene() -> None:
        async with (
            raw_server(always(b"HTTP/1.1 200 OK\r\n\r\nall of it", closes=True)) as server,
            HttpClient() as client,
        ):
            assert (await client.request("GET", server.url)).body == b"all of it"

    asyncio.run(scene())


def test_the_answer_to_a_head_request_has_no_body() -> None:
    async def scene() -> None:
        reply = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
        async with raw_server(always(reply)) as server, HttpClient() as client:
            assert (await client.request("HEAD", server.url)).body == b""
            assert (await client.request("HEAD", server.url)).headers["content-length"] == "1000"

    asyncio.run(scene())


def test_megabytes_pass_both_ways() -> None:
    body = bytes(range(256)) * 12_000

    async def scene() -> None:
        reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        async with raw_server(always(reply)) as server, HttpClient() as client:
            assert (await client.request("POST", server.url, body)).body == body
        assert server.requests[0].endswith(body)

    asyncio.run(scene())


def test_a_refused_connection_and_an_unknown_host_are_told_apart_from_other_faults() -> None:
    async def scene() -> None:
        async with raw_server(always(OK)) as server:
            gone = server.url
        async with HttpClient() as client:
            with pytest.raises(ConnectFailed, match=r"No connection to 127\.0\.0\.1:\d+: .*refused"):
                await client.request("GET", gone)
            with pytest.raises(ConnectFailed, match=r"nobody\.invalid:80"):
                await client.request("GET", "http://nobody.invalid/")

    asyncio.run(scene())


def test_a_failed_connection_leaves_its_place_to_the_next() -> None:
    async def scene() -> None:
        async with raw_server(always(OK)) as server:
            gone = server.url
        async with HttpClient(max_connections=1) as client:
            for _ in range(3):
                with pytest.raises(ConnectFailed):
                    await client.request("GET", gone)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://host/", "not a URL with http"),
        ("http:///path", "not a URL with http"),
        ("127.0.0.1:9000", "not a URL"),
        ("http://host:port/", "not a URL"),
        ("http://ann:secret@host/", "contains a password"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str, complaint: str) -> None:
    async def scene() -> None:
        async with HttpClient() as client:
            with pytest.raises(BadRequest, match=complaint) as refusal:
                await client.request("GET", url)
        assert "secret" not in str(refusal.value)

    asyncio.run(scene())


@pytest.mark.parametrize("headers", [{"x": "1\r\ny: 2"}, {"x\n": "1"}, {"": "1"}, {"x": "漢"}])
def test_a_header_that_would_break_the_request_is_refused(headers: dict[str, str]) -> None:
    async def scene() -> None:
        async with HttpClient() as client:
            with pytest.raises(BadRequest):
                await client.request("GET", "http://127.0.0.1:1/", headers=headers)

    asyncio.run(scene())


def test_blanks_and_letters_of_any_alphabet_in_a_url_are_escaped() -> None:
    async def scene() -> None:
        async with raw_server(always(OK)) as server, HttpClient() as client:
            await client.request("GET", server.url + "a b/ü?q=ß&r=%20")
        assert server.requests[0].startswith(b"GET /a%20b/%C3%BC?q=%C3%9F&r=%20 HTTP/1.1\r\n")

    asyncio.run(scene())


def test_closing_the_client_ends_what_is_under_way() -> None:
    asked = asyncio.Event()

    async def never(writer: asyncio.StreamWriter, number: int) -> None:
        asked.set()
        await asyncio.sleep(600)

    async def scene() -> None:
        async with raw_server(never) as server, HttpClient(max_connections=1) as client:
            waiting = [asyncio.create_task(client.request("GET", server.url)) for _ in range(2)]
            await asked.wait()
            await client.close()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in ended] == [Disconnected, ConnectFailed]

    asyncio.run(scene())

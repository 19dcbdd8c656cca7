"""The server's half of HTTP/1.1, as a client without any library sees it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial

import pytest

from assay.http.server import HttpRequest, HttpServer, ServerConnection, TaskServer


def talk(server: HttpServer, *messages: bytes) -> bytes:
    """What comes back on one connection until it is closed."""

    async def scene() -> bytes:
        port = await server.listen()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for message in messages:
                writer.write(message)
                await writer.drain()
            return await reader.read()
        finally:
            writer.close()
            server.close()
            await asyncio.sleep(0.01)

    return asyncio.run(asyncio.wait_for(scene(), 30))


def echo(client: ServerConnection, request: HttpRequest) -> None:
    client.answer(200, [request.method, request.path, request.target, request.body.decode()])


def stream(status: int) -> Callable[[ServerConnection, HttpRequest], None]:
    def answer(client: ServerConnection, request: HttpRequest) -> None:
        client.send(client.begin("text/plain", status) + client.chunk(b"abc") + client.last_chunk)
        client.finish()

    return answer


@pytest.mark.parametrize("resets", [True, False])
def test_a_server_that_closes_ends_a_connection_that_is_still_being_made(resets: bool) -> None:
    class ClosingServer(HttpServer):
        def connect(self) -> ServerConnection:
            asyncio.get_running_loop().call_soon(
                partial(self.close, resets=resets)
            )  # before the connection is made
            return super().connect()

    assert talk(ClosingServer(echo), b"") == b""


def test_a_server_that_closes_ends_a_connection_that_was_just_accepted() -> None:
    async def scene() -> bytes:
        server, loop = HttpServer(echo), asyncio.get_running_loop()
        port = await server.listen()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setblocking(False)
            await asyncio.sleep(0)  # the loop accepts it after this coroutine, in the same round
            await asyncio.sleep(0)
            server.close()
            return await asyncio.wait_for(loop.sock_recv(client, 1), 5)

    assert asyncio.run(scene()) == b""


def test_requests_ahead_of_their_turn_are_answered_in_order() -> None:
    one = b"POST /a?b=c HTTP/1.1\r\ncontent-length: 1\r\n\r\n1"
    two = b"POST /d HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n1\r\n2\r\n0\r\n\r\n"
    said = talk(HttpServer(echo), one + two[:70], two[70:])
    assert said.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert said.index(b'["POST","/a","/a?b=c","1"]') < said.index(b'["POST","/d","/d","2"]')
    assert said.count(b"connection: close") == 1


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"GET / HTTP/1.1", 200, b"3\r\nabc\r\n0\r\n\r\n"),
        (b"GET / HTTP/1.0", 200, b"abc"),
        (b"HEAD / HTTP/1.1", 200, b""),
        (b"GET / HTTP/1.1", 204, b""),
    ],
)
def test_a_streamed_answer_is_framed_as_the_client_can_read_it(
    request_line: bytes, status: int, body: bytes
) -> None:
    said = talk(HttpServer(stream(status)), request_line + b"\r\nconnection: close\r\n\r\n")
    head, _, rest = said.partition(b"\r\n\r\n")
    assert rest == body
    assert (b"transfer-encoding: chunked" in head) == body.endswith(b"0\r\n\r\n")


def test_the_answer_to_a_head_request_tells_its_length_only() -> None:
    said = talk(HttpServer(echo), b"HEAD /a HTTP/1.1\r\nconnection: close\r\n\r\n")
    assert b"content-length: %d\r\n" % len(b'["HEAD","/a","/a",""]') in said
    assert said.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"what is this?\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(message: bytes, status: int) -> None:
    assert talk(HttpServer(echo), message).startswith(b"HTTP/1.1 %d " % status)


def test_a_handler_that_fails_closes_the_connection_after_what_it_sent() -> None:
    async def fail(client: ServerConnection, request: HttpRequest) -> None:
        client.send(client.begin("text/plain") + client.chunk(b"abc"))
        raise ConnectionError

    said = talk(TaskServer(fail), b"GET / HTTP/1.1\r\n\r\n")
    assert said.endswith(b"3\r\nabc\r\n")


def test_a_handler_is_told_that_its_client_has_gone() -> None:
    async def scene() -> bool:
        gone: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def send_on(client: ServerConnection, request: HttpRequest) -> None:
            client.send(client.begin("text/plain"))
            try:
                while True:
                    client.send(client.chunk(b"x" * 2**16))
                    await client.drain()
                    await asyncio.sleep(0)
            except ConnectionResetError:
                gone.set_result(True)
                raise

        server = TaskServer(send_on)
        _, writer = await asyncio.open_connection("127.0.0.1", await server.listen())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()
        found = await asyncio.wait_for(gone, 30)
        server.close()
        await asyncio.sleep(0.01)
        return found

    assert asyncio.run(scene())


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_client_that_closes_its_side_gets_its_answer_where_that_is_asked_for(is_answered: bool) -> None:
    async def handle(client: ServerConnection, request: HttpRequest) -> None:
        await asyncio.sleep(0.05)
        await client.drain()
        client.answer(200, "late")

    async def scene() -> bytes:
        server = TaskServer(handle, answers_half_closed=is_answered)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.listen())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        writer.write_eof()
        try:
            return await reader.read()
        finally:
            writer.close()
            server.close()
            await asyncio.sleep(0.1)

    assert (b'"late"' in asyncio.run(asyncio.wait_for(scene(), 30))) is is_answered

from __future__ import annotations

import asyncio

import pytest
from tests.http.raw_server import OK, always, raw_server
from tests.http.tls_provider import Certificate, make_certificate

from assay.http.client import HttpClient
from assay.http.errors import ConnectFailed, TlsFailed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_certificate_from_the_given_file_is_trusted_and_the_connection_kept(
    certificate: Certificate,
) -> None:
    async def scene() -> None:
        big = b"HTTP/1.1 200 OK\r\ncontent-length: 500000\r\n\r\n" + b"x" * 500_000
        async with (
            raw_server(always(big), certificate.server_context()) as server,
            HttpClient(ca_file=certificate.file) as client,
        ):
            for _ in range(2):
                assert len((await client.request("GET", server.url)).body) == 500_000
        assert server.connections == 1

    asyncio.run(scene())


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Certificate) -> None:
    async def scene() -> None:
        async with raw_server(always(OK), certificate.server_context()) as server, HttpClient() as client:
            with pytest.raises(TlsFailed, match=r"self.signed certificate"):
                await client.request("GET", server.url)
        assert server.requests == []

    asyncio.run(scene())


def test_a_server_without_tls_is_a_tls_fault() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def scene() -> None:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as plain, HttpClient() as client:
            port = plain.sockets[0].getsockname()[1]
            with pytest.raises(TlsFailed):
                await client.request("GET", f"https://127.0.0.1:{port}/")

    asyncio.run(scene())


def test_a_server_that_never_shakes_hands_is_given_up_after_the_connect_timeout() -> None:
    hung_up = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    async def scene() -> None:
        async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
            port = silent.sockets[0].getsockname()[1]
            async with HttpClient(connect_timeout=0.05) as client:
                with pytest.raises(ConnectFailed, match=r"within 0\.05 s"):
                    await client.request("GET", f"https://127.0.0.1:{port}/")
            await asyncio.wait_for(hung_up.wait(), 60)

    asyncio.run(scene())

"""STARTTLS with a real handshake (RFC 3207)."""

import asyncio
import ssl

from msgspec.structs import replace

from tests.smtp.doubles import RecordingIntake
from tests.smtp.live import LIMITS, connected, running, until_gone


async def test_a_mail_over_tls_is_marked(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    intake = RecordingIntake()
    async with running(intake, tls=server_tls) as server, connected(server) as client:
        assert "250-STARTTLS" in await client.command("EHLO client.example")
        assert (await client.command("STARTTLS")).startswith("220")
        await client.writer.start_tls(client_tls, server_hostname="localhost")
        assert "STARTTLS" not in await client.command("EHLO client.example")
        await client.start_mail()
        await client.send(b"x" * 3_000_000 + b"\r\n.\r\n")
        assert (await client.reply()).startswith("250")
        assert (await client.command("QUIT")).startswith("221")
    [(envelope, content)] = intake.mails
    assert envelope.tls
    assert envelope.protocol == "ESMTPS"
    assert content == b"x" * 3_000_000 + b"\r\n"


async def test_what_was_said_in_the_clear_is_forgotten(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with running(tls=server_tls) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.command("MAIL FROM:<ann@remote.example>")
        await client.command("STARTTLS")
        await client.writer.start_tls(client_tls, server_hostname="localhost")
        assert (await client.command("RCPT TO:<alice@postroom.test>")).startswith("503")


async def test_plaintext_behind_starttls_is_refused(server_tls: ssl.SSLContext) -> None:
    async with running(tls=server_tls) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.send(b"STARTTLS\r\nMAIL FROM:<ann@remote.example>\r\n")
        assert (await client.rest()).startswith("554 5.5.0")


async def test_a_client_that_goes_on_in_the_clear_is_dropped(server_tls: ssl.SSLContext) -> None:
    intake = RecordingIntake()
    async with running(intake, tls=server_tls) as server:
        async with connected(server) as client:
            await client.command("EHLO client.example")
            await client.command("STARTTLS")
            await client.send(b"MAIL FROM:<ann@remote.example>\r\nRCPT TO:<alice@postroom.test>\r\n")
            assert b"250" not in await client.reader.read()
        await until_gone(server)
    assert intake.mails == []


async def test_a_handshake_that_never_comes_is_cut_off(server_tls: ssl.SSLContext) -> None:
    limits = replace(LIMITS, tls_handshake_seconds=0.2)
    async with running(tls=server_tls, limits=limits) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.command("STARTTLS")
        assert await client.rest() == ""
        await until_gone(server)


async def test_stop_does_not_wait_for_a_handshake(server_tls: ssl.SSLContext) -> None:
    async with running(tls=server_tls) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.command("STARTTLS")
        await server.stop()
        assert await client.rest() == ""


async def test_a_timeout_over_tls_is_told(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async with running(tls=server_tls) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.command("STARTTLS")
        await client.writer.start_tls(client_tls, server_hostname="localhost")
        await client.command("NOOP")
        (connection,) = server._connections.open_connections()
        connection.check_time(asyncio.get_running_loop().time() + LIMITS.command_timeout_seconds + 1)
        assert (await client.rest()).startswith("421 4.4.2")

"""Clients that other people wrote: smtplib, swaks and Postfix's smtp-source."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage

import pytest

from tests.programs import path_of
from tests.smtp.doubles import RecordingIntake
from tests.smtp.live import running

PATIENCE_SECONDS = 120


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert process.returncode == 0, output.decode()
    return output.decode()


def send_with_smtplib(port: int, context: ssl.SSLContext) -> dict[str, tuple[int, bytes]]:
    message = EmailMessage()
    message["Subject"] = "Hello"
    message.set_content(".\n..dots\n.\nHi\n")
    with smtplib.SMTP("localhost", port, timeout=PATIENCE_SECONDS) as client:
        client.starttls(context=context)
        return client.send_message(
            message,
            "ann@remote.example",
            ["alice@postroom.test", "nobody@postroom.test", "bob@postroom.test"],
        )


async def test_smtplib_sends_over_tls_and_hears_who_is_unknown(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    intake = RecordingIntake()
    async with running(intake, tls=server_tls) as server:
        refused = await asyncio.to_thread(send_with_smtplib, server.port, client_tls)
    [(envelope, content)] = intake.mails
    assert {address: code for address, (code, _) in refused.items()} == {"nobody@postroom.test": 550}
    assert [to.destination for to in envelope.recipients] == ["alice", "bob"]
    assert envelope.tls
    assert content.endswith(b"\r\n\r\n.\r\n..dots\r\n.\r\nHi\r\n")


@pytest.mark.needs("swaks")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--tls"], marks=pytest.mark.needs("Net::SSLeay")),
        ["--pipeline"],
        ["--protocol", "SMTP"],
    ],
)
async def test_swaks_sends_a_mail(options: list[str], server_tls: ssl.SSLContext) -> None:
    intake = RecordingIntake()
    async with running(intake, tls=server_tls) as server:
        output = await run(
            path_of("swaks"),
            *("--server", "127.0.0.1", "--port", str(server.port)),
            *("--from", "ann@remote.example", "--to", "alice@postroom.test,bob@postroom.test"),
            *("--h-Subject", "From swaks", "--body", "Hi"),
            *options,
        )
    [(envelope, content)] = intake.mails
    assert f"Stored as {envelope.id}" in output
    assert b"Subject: From swaks\r\n" in content
    assert [to.destination for to in envelope.recipients] == ["alice", "bob"]
    assert envelope.tls is ("--tls" in options)


@pytest.mark.needs("smtp-source")
@pytest.mark.parametrize("options", [[], ["-d"], ["-l", "1200000"]])
async def test_smtp_source_sends_many_mails_at_once(options: list[str]) -> None:
    intake = RecordingIntake()
    async with running(intake) as server:
        await run(
            path_of("smtp-source"),
            *("-s", "10", "-m", "50", "-f", "ann@remote.example", "-t", "alice@postroom.test"),
            *options,
            f"inet:127.0.0.1:{server.port}",
        )
    assert len(intake.mails) == 50
    assert len({envelope.id for envelope, _ in intake.mails}) == 50

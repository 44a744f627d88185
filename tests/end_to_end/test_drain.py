"""The end of a server behind a load balancer, and the renewal of its certificate, by signals."""

import asyncio
import json
import signal
import smtplib
import ssl
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from cryptography import x509
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from postroom.assembly import serving
from postroom.smtp.tls import make_certificate, own_files
from tests.conftest import api_client, settings
from tests.doubles import FakeClock
from tests.end_to_end.process import TOKEN, Running, serving_process
from tests.mail.keys import signing_key
from tests.net.test_certificate import trusting
from tests.waiting import wait_until

PATIENCE_SECONDS = 120


def ask(running: Running, path: str) -> int:
    url = f"https://127.0.0.1:{running.http_port}{path}"
    request = Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urlopen(request, context=trusting(), timeout=PATIENCE_SECONDS) as answer:
            status: int = answer.status
            return status
    except HTTPError as error:
        error.close()
        return error.code


def web_name(running: Running) -> str:
    shown = ssl.get_server_certificate(("127.0.0.1", running.http_port), timeout=PATIENCE_SECONDS)
    return x509.load_pem_x509_certificate(shown.encode()).subject.rfc4514_string()


def mail_name(running: Running) -> str:
    with smtplib.SMTP("127.0.0.1", running.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
        smtp.starttls(context=trusting())
        assert isinstance(smtp.sock, ssl.SSLSocket)
        shown = smtp.sock.getpeercert(True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).subject.rfc4514_string()


def test_a_process_renews_its_certificate_drains_and_can_be_hurried(tmp_path: Path) -> None:
    files = own_files(tmp_path / "tls", "one.example")
    more = {"TLS_CERT": str(files.certificate), "TLS_KEY": str(files.key), "DRAIN_SECONDS": "3600"}
    with serving_process(tmp_path / "data", more=more) as running:
        wait_until(lambda: ask(running, "/ready") == 200, "its worker never started")
        assert (web_name(running), mail_name(running)) == ("CN=one.example", "CN=one.example")
        make_certificate(files.certificate, files.key, "two.example")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: web_name(running) == "CN=two.example", "the certificate was not renewed")
        wait_until(lambda: mail_name(running) == "CN=two.example", "the worker keeps its certificate")

        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: ask(running, "/ready") == 503, "it is still ready")
        assert ask(running, "/v1/me") == 200
        assert mail_name(running) == "CN=two.example"
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(PATIENCE_SECONDS) == 0


async def test_after_the_wait_streams_are_closed_while_requests_are_still_answered(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with serving(settings(tmp_path, DRAIN_SECONDS="1"), clock, None, signing_key) as postroom:
        assert postroom.first_token is not None
        base_url = postroom.resources.config.base_url
        url = f"{base_url.replace('http', 'ws', 1)}/v1/ws?token={postroom.first_token}"
        async with (
            connect(url, open_timeout=PATIENCE_SECONDS) as one,
            connect(url, open_timeout=PATIENCE_SECONDS) as two,
            api_client(base_url, postroom.first_token) as api,
        ):
            for stream in (one, two):
                await stream.send('{"type": "subscribe"}')
                assert json.loads(await stream.recv())["type"] == "subscribed"
            assert (await api.get("/ready")).status_code == 200
            draining = asyncio.create_task(postroom.drain())
            while (await api.get("/ready")).status_code != 503:
                await asyncio.sleep(0.05)
            for stream in (one, two):
                assert await code_of_end(stream) == 1001
            await draining
            async with connect(url, open_timeout=PATIENCE_SECONDS) as late:
                assert await code_of_end(late) == 1001
            assert (await api.get("/v1/me")).status_code == 200


async def code_of_end(stream: ClientConnection) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stream.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code

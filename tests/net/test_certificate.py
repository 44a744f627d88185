"""A certificate that is renewed while clients come."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509

from postroom.net.certificate import Certificate, CertificateFiles
from postroom.smtp.tls import make_certificate, own_files


def old_files(folder: Path) -> CertificateFiles:
    """What is written next has another time, also where a clock of files has few ticks."""
    files = own_files(folder, "one.example")
    for path in (files.certificate, files.key):
        os.utime(path, (0, 0))
    return files


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def shown_name(port: int, server_name: str) -> str:
    """The name in the certificate that a client gets."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(), server_hostname=server_name)
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string()


@contextlib.asynccontextmanager
async def listening(certificate: Certificate) -> AsyncIterator[int]:
    def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=certificate.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_the_next_handshake_has_the_renewed_certificate_with_and_without_a_name(tmp_path: Path) -> None:
    files = old_files(tmp_path)
    certificate = Certificate(files)
    async with listening(certificate) as port:
        assert await shown_name(port, "one.example") == "CN=one.example"
        assert not certificate.refresh()
        make_certificate(files.certificate, files.key, "two.example")
        assert certificate.refresh()
        for server_name in ("one.example", ""):
            assert await shown_name(port, server_name) == "CN=two.example"


async def test_files_that_do_not_fit_together_change_nothing_until_they_do(tmp_path: Path) -> None:
    files = old_files(tmp_path)
    certificate = Certificate(files)
    later = own_files(tmp_path / "later", "two.example")
    async with listening(certificate) as port:
        files.certificate.write_bytes(later.certificate.read_bytes())
        assert not certificate.refresh()
        assert await shown_name(port, "one.example") == "CN=one.example"
        files.key.unlink()
        assert not certificate.refresh()
        files.key.write_bytes(later.key.read_bytes())
        assert certificate.refresh()
        assert await shown_name(port, "one.example") == "CN=two.example"


def test_files_of_no_use_are_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("nothing")
    with pytest.raises(OSError):
        Certificate(CertificateFiles(tmp_path / "key.pem", tmp_path / "key.pem"))

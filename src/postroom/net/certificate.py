"""Certificates: the server's own, reloaded when its files change, and the authorities to trust."""

import asyncio
import datetime
import functools
import ssl
from pathlib import Path

from msgspec import Struct

from postroom import log
from postroom.clock import SECOND

CHECK_SECONDS = 10.0
Stamp = tuple[tuple[int, int, int], ...]


class CertificateFiles(Struct, frozen=True):
    certificate: Path  # with its chain
    key: Path


class Certificate:
    """`context` stays the same, so that listeners can keep it; each handshake uses what is current."""

    def __init__(self, files: CertificateFiles) -> None:
        """Raises OSError or ssl.SSLError if the files cannot be used."""
        self.files = files
        self._seen: Stamp = _stamp(files)
        self.context = self._current = _load(files)
        # Called at every handshake, also for a client that names no server.
        self.context.sni_callback = self._choose
        self.others: dict[str, ssl.SSLContext] = {}  # by the name that a client asks for
        self.challenges: dict[str, ssl.SSLContext] = {}

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        asked = (name or "").lower()
        connection.context = self.challenges.get(asked) or self.others.get(asked, self._current)

    def refresh(self) -> bool:
        """Return whether a new certificate was loaded. Files that do not match yet are tried later."""
        try:
            stamp = _stamp(self.files)
            if stamp == self._seen:
                return False
            self._current = _load(self.files)
        except OSError as error:  # ssl.SSLError is one
            log.get().seldom("the certificate cannot be read", reason=str(error))
            return False
        self._seen = stamp
        log.get().info("the certificate was read again", file=self.files.certificate)
        return True

    def expires_at(self) -> int:
        """Return when the current file's certificate expires. Raises OSError or ValueError."""
        from cryptography import x509  # takes a while, and only metrics ask

        found = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
        return int(found.not_valid_after_utc.astimezone(datetime.UTC).timestamp()) * SECOND

    async def keep_fresh(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.refresh()


@functools.cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the system's certificate authorities, loaded on first use."""
    return ssl.create_default_context()


def _load(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


def _stamp(files: CertificateFiles) -> Stamp:
    found = (path.stat() for path in (files.certificate, files.key))
    return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)

"""Takes certificates into use: files for the processes of this machine, and one for each name asked for."""

import os
import secrets
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from postroom import log
from postroom.certificates.certificates import OpenChallenge, StoredCertificate
from postroom.net.certificate import Certificate, CertificateFiles
from postroom.processes import pools

FILE_NAME = "acme.pem"  # key and chain in one file: they change together


class CertificatesInUse:
    def __init__(self, certificate: Certificate, folder: Path, own_name: str) -> None:
        self._certificate, self._folder, self._own_name = certificate, folder, own_name
        self._installed: dict[str, int | None] = {}

    def find_changed(self, issued: Mapping[str, int]) -> list[str]:
        """Return the names whose certificate is to be installed; remove those that nobody needs any more."""
        for name in self._certificate.others.keys() - issued.keys():
            del self._certificate.others[name]
            self._installed.pop(name, None)
            (self._folder / f"{name}.pem").unlink(missing_ok=True)
        return [name for name, moment in issued.items() if self._installed.get(name) != moment]

    async def install(self, stored: Sequence[StoredCertificate]) -> None:
        """Install a certificate. If it cannot be loaded, log that and keep the old one."""
        for each in stored:
            await pools.ONCE.run(self._install, each)

    async def show_challenges(self, challenges: Sequence[OpenChallenge]) -> None:
        """Show the challenges.

        A client that asks for a name with a challenge gets the certificate that answers it.
        """
        shown = {each.name: await pools.ONCE.run(self._make_challenge, each) for each in challenges}
        self._certificate.challenges = shown

    def _make_challenge(self, challenge: OpenChallenge) -> ssl.SSLContext:
        from postroom.certificates import tls_challenge  # few servers need it

        file = self._folder / f".challenge.{secrets.token_hex(8)}"
        try:
            write(file, tls_challenge.make(challenge.name, challenge.key_authorization))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file)
        finally:
            file.unlink(missing_ok=True)
        context.set_alpn_protocols([tls_challenge.PROTOCOL])
        return context

    def _install(self, stored: StoredCertificate) -> None:
        is_own = stored.name == self._own_name
        file = self._folder / FILE_NAME if is_own else self._folder / f"{stored.name}.pem"
        try:
            write(file, f"{stored.key}{stored.chain}")
            if is_own:
                self._certificate.refresh()
            else:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(file)
                self._certificate.others[stored.name] = context
        except OSError as error:  # ssl.SSLError is one
            log.get().error("a certificate cannot be used", name=stored.name, reason=str(error))
        else:
            self._installed[stored.name] = stored.issued_at


def first_files(own: CertificateFiles) -> CertificateFiles:
    """Return the file of the last run, or a self-signed certificate until there is one."""
    file = own.key.with_name(FILE_NAME)
    if not file.exists():
        write(file, own.key.read_text() + own.certificate.read_text())
    return CertificateFiles(file, file)


def write(file: Path, content: str) -> None:
    """Replaces the file at once: another process may be reading it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.replace(file)

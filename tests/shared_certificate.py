"""One certificate of each name for this process: to make and read it is a tenth of a server's start."""

import functools
import ssl
import tempfile
from pathlib import Path

from postroom.net import certificate
from postroom.net.certificate import CertificateFiles
from postroom.smtp import tls

make_new = tls.make_certificate
read_files = certificate._load


def share_certificates() -> None:
    """Files that a test has written itself are read as ever."""
    tls.make_certificate = write_shared
    certificate._load = read_once


def write_shared(certificate: Path, key: Path, hostname: str) -> None:
    certificate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, content in zip((certificate, key), made_for(hostname), strict=True):
        path.write_bytes(content)


@functools.cache
def made_for(hostname: str) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        files = CertificateFiles(Path(folder) / "certificate.pem", Path(folder) / "key.pem")
        make_new(files.certificate, files.key, hostname)
        return content_of(files)


def content_of(files: CertificateFiles) -> tuple[bytes, bytes]:
    return files.certificate.read_bytes(), files.key.read_bytes()


def read_once(files: CertificateFiles) -> ssl.SSLContext:
    content = content_of(files)
    if content not in _read:
        _read[content] = read_files(files)
    return _read[content]


_read: dict[tuple[bytes, bytes], ssl.SSLContext] = {}

"""The document in a report's file: plain, gzip or zip; up to a limit, whatever its header claims."""

import io
import zipfile
import zlib

MAX_BYTES = 5 * 1024 * 1024
MAX_MEMBERS = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Others need as much memory as the file says.
PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class BadReport(ValueError):
    """It cannot be read, or is implausibly large."""


def unpack(content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        content = _gunzip(content)
    elif content.startswith(b"PK\x03\x04"):
        content = _unzip(content)
    if len(content) > MAX_BYTES:
        raise BadReport("too large")
    return content.removeprefix(BYTE_ORDER_MARK).lstrip()


def _gunzip(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(content, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadReport(str(error)) from None


def _unzip(content: bytes) -> bytes:
    """Return its only file; several are refused: each could be as large as the limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [each for each in archive.infolist()[:MAX_MEMBERS] if not each.is_dir()]
            if len(files) != 1 or files[0].compress_type not in PLAIN_METHODS:
                raise BadReport("not one plain file")
            with archive.open(files[0]) as file:
                return file.read(MAX_BYTES + 1)
    except BadReport:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise BadReport(str(error)) from None

"""Blobs in an S3 store shared by all nodes. A blob is stored before its name is returned."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import parse_qs, quote, urlsplit

from postroom.errors import STORE_AWAY, Unavailable
from postroom.storage.blobs import STORE_ID, STREAM_BYTES, BlobPart, BlobsByHash, checked_stream

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

TIMEOUT = timedelta(seconds=10)
CONNECT_TIMEOUT = timedelta(seconds=2)
RETRIES = 2
BELIEVED_SECONDS = 10.0
PAGE = 500
NO_NAMES = (STORE_ID, "probe")


def open_s3(url: str) -> "S3Store":
    """Open `s3://bucket/prefix?endpoint=…&region=…`. The credentials come from the usual AWS variables."""
    from obstore.store import S3Store

    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    config: S3Config = {}
    if "endpoint" in options:
        config["endpoint"] = options["endpoint"]
    if "region" in options:
        config["region"] = options["region"]
    is_plain = options.get("endpoint", "").startswith("http://")
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options={"timeout": TIMEOUT, "connect_timeout": CONNECT_TIMEOUT, "allow_http": is_plain},
        retry_config={"max_retries": RETRIES, "retry_timeout": TIMEOUT},
    )


class S3Blobs(BlobsByHash):
    """Synchronous; call it in a thread if it must not block the event loop."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self._worked_at = float("-inf")
        self._store_id = ""
        with away_is_unavailable():
            self._store = open_s3(url)

    def put_as(self, name: str, content: bytes) -> None:
        """Create the blob. An existing one of this name is the same, since the name holds the hash."""
        with away_is_unavailable():
            self._create(_path(name), content)

    def get_unchecked(self, name: str) -> bytes:
        with away_is_unavailable():
            return self._store.get(_path(name)).bytes().to_bytes()

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the blob once it is complete: held in memory while small, else in an unnamed file."""
        with ExitStack() as stack:
            spool = stack.enter_context(tempfile.SpooledTemporaryFile(STREAM_BYTES))
            with away_is_unavailable():
                for chunk in self._store.get(_path(name)).stream(STREAM_BYTES):
                    spool.write(bytes(chunk))
            spool.seek(0)
            chunks = checked_stream(name, cast(BinaryIO, spool))
            stack.pop_all()
            return chunks

    def remove(self, name: str) -> None:
        with away_is_unavailable():
            self._store.delete(_path(name))  # a missing blob is no error

    def names(self, older_than_seconds: float) -> Iterator[str]:
        newest = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
        with away_is_unavailable():
            pages = iter(self._store.list(chunk_size=PAGE))
            while (page := next(pages, None)) is not None:
                for found in page:
                    name = found["path"].rpartition("/")[2]
                    if found["last_modified"] <= newest and not name.startswith(NO_NAMES):
                        yield name

    def check(self) -> None:
        """Check the store. A put costs money, and a store never fills up: a recent success is enough."""
        if time.monotonic() - self._worked_at < BELIEVED_SECONDS:
            return
        probe = f"probe-{secrets.token_hex(8)}"
        with away_is_unavailable():
            self._create(probe, b"?")
            self._store.delete(probe)

    def store_id(self) -> str:
        """Return the id kept in the store itself: the first node that sees the store creates it."""
        if not self._store_id:
            with away_is_unavailable():
                self._create(STORE_ID, secrets.token_hex(8).encode())
                self._store_id = self._store.get(STORE_ID).bytes().to_bytes().decode()
        return self._store_id

    def link(self, part: BlobPart, make: Callable[[], bytes], seconds: float) -> str | None:
        import obstore

        with away_is_unavailable():
            if not self._has(part.name):
                self._put_part(part, make())
            return obstore.sign(self._store, "GET", _path(part.name), timedelta(seconds=seconds))

    def _has(self, name: str) -> bool:
        try:
            self._store.head(_path(name))
        except FileNotFoundError:
            return False
        return True

    def _put_part(self, part: BlobPart, content: bytes) -> None:
        """Sets the headers that the store sends with a download."""
        disposition = f"attachment; filename*=UTF-8''{quote(part.filename, safe='')}"
        attributes = {"Content-Disposition": disposition, "Content-Type": part.content_type}
        self._store.put(_path(part.name), content, attributes=attributes, use_multipart=False)

    def _create(self, path: str, content: bytes) -> None:
        from obstore.exceptions import AlreadyExistsError

        self._worked_at, began = float("-inf"), time.monotonic()
        with suppress(AlreadyExistsError):  # a try whose answer was lost may have succeeded
            self._store.put(path, content, mode="create", use_multipart=False)
        self._worked_at = began


@contextmanager
def away_is_unavailable() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        raise Unavailable(f"{STORE_AWAY} Try again.", retry_after=5) from error


def _path(name: str) -> str:
    return f"{name[:2]}/{name}"

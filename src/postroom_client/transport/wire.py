"""Sends a described call and receives its answer."""

import functools
import io
import os
import re
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import msgspec

from postroom_client.errors import ConnectionFailed, Unauthorized
from postroom_client.transport.exchange import Call, Fault, OutgoingFile, Reply, read_retry_after

CONNECT_TIMEOUT_SECONDS = 10.0
JSON = {"Content-Type": "application/json"}
OnProgress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known

# Before any of these the request has not left this machine.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


def require_visible(api_key: str) -> None:
    """Require an ASCII key: anything else was copied wrong, and no header could carry it."""
    if not (api_key.isascii() and api_key.isprintable()):
        raise Unauthorized("The API key has invalid characters. Copy it again.")


def trusted() -> ssl.SSLContext:
    """Return the system's certificate authorities, loaded once: that takes longer than most calls."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.cache
def _trusted(cert_file: str | None, cert_folder: str | None) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def headers(api_key: str) -> dict[str, str]:
    require_visible(api_key)
    return {"Authorization": f"Bearer {api_key}", "User-Agent": "postroom-client"}


def trace_headers() -> dict[str, str]:
    """Return the trace that this program is in, if it uses OpenTelemetry, which is never loaded for that."""
    propagate = sys.modules.get("opentelemetry.propagate")
    if propagate is None:
        return {}
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {name: value for name, value in carrier.items() if name == "traceparent"}


def build(
    http: httpx2.Client | httpx2.AsyncClient, call: Call[Any], on_progress: OnProgress | None
) -> httpx2.Request:
    """Build one request for every attempt, so that all of them are identical."""
    try:
        return http.build_request(
            call.method,
            call.path,
            params=dict(call.query) or None,
            headers={**trace_headers(), **call.headers, **({} if call.json is None else JSON)},
            timeout=httpx2.Timeout(call.timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
            **_body(call, on_progress or ignore_progress),
        )
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConnectionFailed(f"{http.base_url} cannot be used: {error}") from None


def _body(call: Call[Any], on_progress: OnProgress) -> dict[str, Any]:
    if call.files:
        opened = _counted(call.files, on_progress)
        parts = [
            ("attachments", (file.filename, content, file.content_type))
            for file, content in zip(call.files, opened, strict=True)
        ]
        return {"data": dict(call.form), "files": parts}
    if call.content is not None:
        return {"content": call.content}
    return {} if call.json is None else {"content": msgspec.json.encode(call.json)}


def ignore_progress(done: int, total: int | None) -> None:
    """Ignore progress: nobody watches."""


class CountedFile:
    """A file to upload that reports the progress of all files."""

    def __init__(self, content: bytes, emit_all: Callable[[], None]) -> None:
        self._content = io.BytesIO(content)
        self._emit_all = emit_all

    def read(self, size: int = -1) -> bytes:
        chunk = self._content.read(size)
        self._emit_all()
        return chunk

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._content.seek(offset, whence)

    def tell(self) -> int:
        return self._content.tell()


def _counted(files: Sequence[OutgoingFile], on_progress: OnProgress) -> list[CountedFile]:
    total = sum(len(file.content) for file in files)

    def emit_all() -> None:
        on_progress(sum(file.tell() for file in counted), total)

    counted = [CountedFile(file.content, emit_all) for file in files]
    return counted


def attempt(
    http: httpx2.Client, request: httpx2.Request, call: Call[Any], on_progress: OnProgress | None
) -> Reply | Fault:
    try:
        answer = http.send(request, stream=True, follow_redirects=call.follows_redirects)
        try:
            taken = Taken(answer, on_progress if not call.files else None)
            for chunk in answer.iter_bytes():
                taken.add(chunk)
            return taken.reply()
        finally:
            answer.close()
    except httpx2.RequestError as error:
        return explain(http.base_url, error)


async def async_attempt(
    http: httpx2.AsyncClient, request: httpx2.Request, call: Call[Any], on_progress: OnProgress | None
) -> Reply | Fault:
    try:
        answer = await http.send(request, stream=True, follow_redirects=call.follows_redirects)
        try:
            taken = Taken(answer, on_progress if not call.files else None)
            async for chunk in answer.aiter_bytes():
                taken.add(chunk)
            return taken.reply()
        finally:
            await answer.aclose()
    except httpx2.RequestError as error:
        return explain(http.base_url, error)


class Taken:
    """The part of an answer received so far."""

    def __init__(self, answer: httpx2.Response, on_progress: OnProgress | None) -> None:
        self._answer = answer
        self._on_progress = on_progress
        self._content = bytearray()
        length = answer.headers.get("content-length", "")
        self._total = int(length) if length.isascii() and length.isdigit() else None

    def add(self, chunk: bytes) -> None:
        self._content += chunk
        if self._on_progress is not None:
            self._on_progress(len(self._content), self._total)

    def reply(self) -> Reply:
        headers = self._answer.headers
        return Reply(
            status=self._answer.status_code,
            content=bytes(self._content),
            retry_after=read_retry_after(headers.get("retry-after")),
            date=headers.get("date"),
        )


_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


def explain(base_url: httpx2.URL, error: httpx2.RequestError) -> Fault:
    reason = _ERRNO.sub("", str(error)).rstrip(".")
    reason = "the time ran out" if isinstance(error, httpx2.TimeoutException) else reason
    return Fault(
        reason=f"No answer from {base_url}: {reason or type(error).__name__}.",
        may_have_arrived=not isinstance(error, NEVER_SENT),
    )

"""Bodies that may carry files: JSON with base64, or multipart, read within limits of size and time."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from postroom import limits
from postroom.errors import BadRequest, RequestTimeout, UnsupportedMediaType
from postroom.fields import explain
from postroom.operations.sending.files import OCTETS, SentFile
from postroom.operations.sending.send import LISTS
from postroom.outward.send_stages import files_too_large, require_files_fit
from postroom.processes import pools
from postroom.web.requests.request_body import header, read_json, require_bounded

T = TypeVar("T", bound=Struct)

ALL_ELSE_BYTES = 4 * limits.MEGABYTE  # of a body: its texts, addresses, names
MULTIPART_LIMIT_BYTES = limits.ATTACHMENTS_BYTES + ALL_ELSE_BYTES
JSON_LIMIT_BYTES = limits.ATTACHMENTS_BYTES * 4 // 3 + ALL_ELSE_BYTES  # base64 (RFC 4648 section 4)
UPLOAD_SECONDS = 600.0
FIELDS_LIMIT = 200
OBJECTS: dict[str, Any] = {
    **dict.fromkeys(("headers", "metadata", "fields"), dict[str, str]),
    "calendar": dict[str, Any],
}


async def read_with_files(request: Request, kind: type[T]) -> T:
    """Read a body with files. `kind` has a field `attachments`, a list of files."""
    if header(request, b"content-type").lower().startswith("multipart/form-data"):
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                return await read_multipart(request, kind)
        except TimeoutError:
            raise RequestTimeout("The form did not arrive in time. Send it again.") from None
    body: T = await read_json(request, kind, JSON_LIMIT_BYTES, UPLOAD_SECONDS)
    return body


async def read_multipart(request: Request, kind: type[T]) -> T:
    """Read a multipart body.

    Files go to disk while they arrive; a form that is too large is not read to its end.
    """
    require_plain_form(request)
    counted = Request(request.scope, counting(request.receive, MULTIPART_LIMIT_BYTES))
    try:
        async with counted.form(
            max_files=limits.ATTACHMENTS, max_fields=FIELDS_LIMIT, max_part_size=ALL_ELSE_BYTES
        ) as form:
            files = [file for file in form.getlist("attachments") if isinstance(file, UploadFile)]
            require_files_fit(file.size or 0 for file in files)
            return await pools.COMPOSING.run(to_body, form, [await read_file(file) for file in files], kind)
    except MultiPartException as error:
        raise BadRequest(f"The form could not be read: {error.message}") from None


def require_plain_form(request: Request) -> None:
    """Require UTF-8: the form parser would accept any codec of Python, and some take quadratic time."""
    written = header(request, b"content-type")
    if len(written) > limits.CONTENT_TYPE_CHARACTERS:
        raise BadRequest("The Content-Type is too long.")
    charset = parse_options_header(written)[1].get(b"charset", b"utf-8")
    if charset.lower() not in (b"utf-8", b"utf8"):
        raise UnsupportedMediaType("Send the form in UTF-8.")


def counting(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def receive_and_count() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise files_too_large()
        return message

    return receive_and_count


async def read_file(file: UploadFile) -> SentFile:
    filename, content_type = file.filename or "", file.content_type or OCTETS
    if len(filename) > limits.FILENAME_CHARACTERS or len(content_type) > limits.CONTENT_TYPE_CHARACTERS:
        raise BadRequest("The name or the type of a file is too long.", field="attachments")
    return SentFile(filename, await file.read(), content_type)


def to_body(form: FormData, files: Sequence[SentFile], kind: type[T]) -> T:
    given: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str) and name != "attachments":
            given.setdefault(name, []).append(value)
    fields = {name: read_values(name, values) for name, values in given.items()}
    try:
        body = msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise explain(error, kind) from None
    return msgspec.structs.replace(body, attachments=list(files)) if files else body


def read_values(name: str, values: list[str]) -> Any:
    """Read the values of a field.

    Addresses may be repeated, some are JSON objects; of all others the last value counts.
    """
    if name in LISTS:
        return values
    if name not in OBJECTS:
        return values[-1]
    try:
        raw = values[-1].encode()
        require_bounded(raw)
        return msgspec.json.decode(raw, type=OBJECTS[name])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise BadRequest(f"{name} must be a JSON object.", field=name) from None

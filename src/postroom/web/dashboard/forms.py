"""Forms sent by pages: read into the same kind of types as the bodies of the interface."""

import asyncio
import re
from typing import Any, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import NODEFAULT, Struct
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from postroom import limits
from postroom.errors import BadRequest, Forbidden, RequestTimeout, UnsupportedMediaType
from postroom.fields import explain
from postroom.operations.sending.address_fields import LIST_LIMIT_CHARACTERS
from postroom.operations.sending.files import SentFile
from postroom.outward.send_stages import require_files_fit
from postroom.processes import pools
from postroom.web.requests.files_body import (
    MULTIPART_LIMIT_BYTES,
    UPLOAD_SECONDS,
    counting,
    read_file,
    require_plain_form,
)
from postroom.web.requests.request_body import UNQUOTE_IN_LOOP_BYTES, read_bytes

FORM_LIMIT_BYTES = 256 * 1024
EMAIL_FORM_BYTES = 2 * 1024 * 1024  # of a form that has a whole email in it
FIELDS_LIMIT = 1000
FIELD_CHARACTERS = 5_000
LONG_FIELDS = {"body": EMAIL_FORM_BYTES, **dict.fromkeys(("to", "cc", "bcc"), LIST_LIMIT_CHARACTERS)}
HOME = "/app"
WHOLE_SCOPE = "all"  # its own choice: fields without text are as if they were not sent
COOKIE = "postroom_session"
FORM = "application/x-www-form-urlencoded"

_OWN_PATH = re.compile(r"/app(/[\w./~%-]*)?(\?[\w./~%&=+:@,*-]*)?", re.ASCII)


async def read_form(request: Request, kind: type[Struct], limit: int = FORM_LIMIT_BYTES) -> Any:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != FORM:
        raise UnsupportedMediaType("Only forms of the dashboard are accepted here.")
    raw = await read_bytes(request, limit)
    if len(raw) <= UNQUOTE_IN_LOOP_BYTES:
        return _decode(raw, kind)
    return await pools.COMPOSING.run(_decode, raw, kind)


def _decode(raw: bytes, kind: type[Struct]) -> Any:
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=FIELDS_LIMIT)
    except ValueError:
        raise BadRequest("The form is not valid. Reload the page and try again.") from None
    return _convert(pairs, kind)


async def read_upload(request: Request, kind: type[Struct]) -> Any:
    """Read a form that may carry files; `kind` has a field `attachments` for them."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await read_form(request, kind, EMAIL_FORM_BYTES)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            pairs, files = await _read_parts(request)
    except TimeoutError:
        raise RequestTimeout("The upload took too long. Try again.") from None
    except MultiPartException as error:
        raise BadRequest(f"The form is not valid: {error.message}") from None
    return msgspec.structs.replace(_convert(pairs, kind), attachments=files)


async def _read_parts(request: Request) -> tuple[list[tuple[str, str]], list[SentFile]]:
    """Read the parts of a form. A browser sends a part without a name if no file was chosen."""
    require_plain_form(request)
    counted = Request(request.scope, counting(request.receive, MULTIPART_LIMIT_BYTES))
    async with counted.form(max_files=limits.ATTACHMENTS, max_part_size=EMAIL_FORM_BYTES) as form:
        chosen = [file for file in form.getlist("attachments") if isinstance(file, UploadFile)]
        files = [file for file in chosen if file.filename]
        require_files_fit(file.size or 0 for file in files)
        fields = [(name, value) for name, value in form.multi_items() if name != "attachments"]
        pairs = [(name, value) for name, value in fields if isinstance(value, str)]
        return pairs, [await read_file(file) for file in files]


def _convert(pairs: list[tuple[str, str]], kind: type[Struct]) -> Any:
    for name, value in pairs:
        if len(value) > LONG_FIELDS.get(name, FIELD_CHARACTERS):
            raise BadRequest(f"{name[:50]} is too long.", field=name[:50])
    try:
        return msgspec.convert(_to_values(pairs, kind), kind, strict=False)
    except msgspec.ValidationError as error:
        raise explain(error, kind) from None


def _to_values(pairs: list[tuple[str, str]], kind: type[Struct]) -> dict[str, Any]:
    """Return the values. Empty fields count as missing, unless required."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        given = [value.replace("\r\n", "\n") for name, value in pairs if name == field.encode_name]
        if get_origin(hints[field.name]) is list:
            values[field.encode_name] = given
        elif given and (given[-1] != "" or field.default is NODEFAULT):
            values[field.encode_name] = given[-1]
    return values


def require_own_page(request: Request, base_url: str) -> None:
    """Require a change to come from one of our pages, as the browser's headers show."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_own = site == "same-origin"
    else:
        is_own = is_own_origin(request.headers.get("origin"), request.headers.get("host"), base_url)
    if not is_own:
        raise Forbidden("This request came from another site. Open Postroom and try again.")


def is_own_origin(origin: str | None, host: str | None, base_url: str) -> bool:
    scheme = base_url.partition("://")[0]
    return origin is not None and origin in (base_url, f"{scheme}://{host}")


def own_path(wanted: str) -> str:
    """Return one of our own pages, else the first: nobody is sent elsewhere."""
    return wanted if _OWN_PATH.fullmatch(wanted) and "//" not in wanted else HOME


def own_page(url: str) -> str:
    """Return the same for a whole URL, as in a Referer header."""
    return own_path("/" + url.partition("://")[2].partition("/")[2])

"""Links that work once: PUT a file to attach later, or GET an attachment."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ApiError, BadRequest, MethodNotAllowed, UnsupportedMediaType
from postroom.mailbox import drafts, file_links, raw_mails
from postroom.mailbox.file_links import PATHS, UPLOAD, FileLink
from postroom.operations import file_links as verbs
from postroom.processes import pools
from postroom.resources import Resources
from postroom.web.api.messages import to_file_response
from postroom.web.requests.files_body import UPLOAD_SECONDS
from postroom.web.requests.request_body import header, read_bytes
from postroom_mail.mime.parse import parse_mail


class StoredUpload(Struct, rename="camel", frozen=True):
    id: str
    filename: str
    content_type: str
    size_bytes: int


def kind_of(path: str) -> str | None:
    """Return the kind of link that this path is, or None."""
    return next((kind for kind, prefix in PATHS.items() if path.startswith(prefix)), None)


async def answer(resources: Resources, kind: str, request: Request) -> Response:
    wanted = "PUT" if kind == UPLOAD else "GET"
    if request.method != wanted:
        raise MethodNotAllowed(f"This link takes one {wanted}.", allow=[wanted])
    path, now = request.scope["path"], resources.now()
    link = await resources.db.read(file_links.find_by_path, kind, path, now)
    return await (take_upload if kind == UPLOAD else give_download)(resources, link, request)


async def take_upload(resources: Resources, link: FileLink, request: Request) -> Response:
    """Store the body, and answer 200 once it is durable. The link still works after a failure."""
    require_as_named(link, request)
    content = await read_bytes(request, link.size_bytes, UPLOAD_SECONDS)
    if len(content) != link.size_bytes:
        raise wrong_size(link, len(content))
    is_small = drafts.is_small(content)
    blob = None if is_small else await pools.FILES.run(resources.blobs.put, content)
    try:
        in_row = content if is_small else None
        await resources.db.write(file_links.store, link, in_row, blob, resources.now())
    except ApiError as error:
        if error.status < 500:  # after a server fault it is unknown whether the commit happened
            await raw_mails.remove_blob(resources, blob)
        raise
    shown = StoredUpload(link.id, link.filename, link.content_type, link.size_bytes)
    return Response(msgspec.json.encode(shown), media_type="application/json")


def require_as_named(link: FileLink, request: Request) -> None:
    """Refuse a wrong Content-Type or Content-Length before the body is read. Both may be missing."""
    given = media_type(header(request, b"content-type"))
    if given and given != media_type(link.content_type):
        raise UnsupportedMediaType(
            f"This upload is {media_type(link.content_type)}. PUT it with that Content-Type, or without one."
        )
    declared = header(request, b"content-length")
    if declared and declared != str(link.size_bytes):
        raise wrong_size(link, declared)


def media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def wrong_size(link: FileLink, given: int | str) -> BadRequest:
    return BadRequest(
        f"This upload has exactly {link.size_bytes} bytes, not {str(given)[:20]}. PUT all of the file again.",
        field="sizeBytes",
    )


async def give_download(resources: Resources, link: FileLink, request: Request) -> Response:
    file = await resources.db.write(verbs.take_download, link)
    raw = await raw_mails.read(resources, link.message_id or "", with_trace=False)
    mail = await pools.READING.run(parse_mail, raw)
    answer = to_file_response(mail.attachments[file.position].content, file.filename, file.content_type)
    answer.headers["Cache-Control"] = "no-store"
    return answer

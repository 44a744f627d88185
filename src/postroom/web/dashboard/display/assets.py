"""Files that pages load: each has its hash in its name, and is cached by the browser."""

import functools
import gzip
import hashlib
import re
from importlib.resources import files

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import NotFound

PATH = "/app/static"
KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
# The name in templates, and the files it is made of.
MADE_OF = {
    "dashboard.css": ("tokens.css", "dashboard.css"),
    "dashboard.js": ("dashboard.js", "writing.js"),
    "passkeys.js": ("passkeys.js",),
    "push.js": ("push.js",),
    "reference.css": ("tokens.css", "reference.css"),
    "reference.js": ("reference.js",),
    "htmx.js": ("htmx.min.js", "hx-nonce.js", "hx-ws.min.js"),
    "favicon.svg": ("favicon.svg",),
    "waiting.svg": ("waiting.svg",),
}
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

# Files with a fixed address: the browser asks each time whether they have changed.
SERVICE_WORKER, MANIFEST = "/app/service-worker.js", "/app/manifest.webmanifest"
FIXED = {
    SERVICE_WORKER: ("service-worker.js", "text/javascript; charset=utf-8"),
    MANIFEST: ("manifest.webmanifest", "application/manifest+json"),
}
ASKED_FOR = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Service-Worker-Allowed": "/app",
}

_NAME = rb"--[a-z][a-z-]*"


class Asset(Struct, frozen=True):
    url: str
    content: bytes
    packed: bytes
    media_type: str


@functools.cache
def load() -> dict[str, Asset]:
    """Load the files by the name used in templates."""
    folder = files("postroom.web.dashboard").joinpath("static")
    return {
        name: _make(name, _shorten(name, b"\n".join(folder.joinpath(part).read_bytes() for part in parts)))
        for name, parts in MADE_OF.items()
    }


def _shorten(name: str, content: bytes) -> bytes:
    """Shortens our own files: no comments in scripts, less white space, short names of CSS properties."""
    if name.endswith(".js") and name != "htmx.js":
        return re.sub(rb"(?m)^\s*(//.*)?\n?", b"", content)
    if not name.endswith(".css"):
        return content
    without_room = re.sub(rb"\s*\n\s*|(?<=[{};:,]) +| +(?=[{}])", b"", content)
    names = {name: b"--%c" % letter for letter, name in enumerate(_names(content), ord("a"))}
    without_room = re.sub(_NAME, lambda found: names[found[0]], without_room)
    return re.sub(rb" ?([>~+]) ?", rb"\1", without_room)


def _names(content: bytes) -> list[bytes]:
    """Return our own CSS properties, of which there are fewer than letters."""
    return list(dict.fromkeys(re.findall(_NAME, content)))


def _make(name: str, content: bytes) -> Asset:
    stem, _, suffix = name.rpartition(".")
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(f"{PATH}/{stem}-{digest}.{suffix}", content, gzip.compress(content, mtime=0), TYPES[suffix])


@functools.cache
def load_fixed(name: str) -> bytes:
    """Return a file. The icon in the manifest is that of the pages, under its current name."""
    content = files("postroom.web.dashboard").joinpath("static", name).read_bytes()
    return content.replace(b"favicon.svg", load()["favicon.svg"].url.encode())


def answer_fixed(path: str) -> Response:
    name, media_type = FIXED[path]
    return Response(load_fixed(name), headers={**ASKED_FOR, "Content-Type": media_type})


def answer(request: Request, by_url: dict[str, Asset]) -> Response:
    asset = by_url.get(request.scope["path"])
    if asset is None:
        raise NotFound("No such file. Reload the page.")
    headers = {**KEPT, "Vary": "Accept-Encoding", "Content-Type": asset.media_type}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(asset.content, headers=headers)

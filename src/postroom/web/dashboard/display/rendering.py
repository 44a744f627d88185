"""From values to HTML: templates next to their pages, everything escaped, the same headers on every page."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import CodeType
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from jinja2.bccache import Bucket
from jinja2.ext import Extension
from markupsafe import Markup
from starlette.responses import Response

from postroom import limits
from postroom.clock import from_iso, to_iso
from postroom.web.dashboard.display import assets
from postroom.web.dashboard.display.attributes import Attributes
from postroom.web.dashboard.display.people import device_of
from postroom_mail.search import query
from postroom_mail.writing.template_fields import FIELD

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SIZES = ("bytes", "kB", "MB", "GB")
MOMENTS_KEPT = 4_096  # as formatted: a reloaded list shows the same ones
INDENTATION = re.compile(r"\n +")


class CompiledTemplates(jinja2.BytecodeCache):
    """Cached in this process: compiling a page takes longer than all the rest."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._code[bucket.key, bucket.checksum] = bucket.code


COMPILED = CompiledTemplates()


class WithoutIndentation(Extension):
    """Lines are indented for those who read templates; no browser needs to be sent that."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return INDENTATION.sub("\n", source)


@cache
def loader() -> jinja2.BaseLoader:
    folders = ["", "pages", "agents", "settings", "operator", "delivery", "profile", "reference"]
    return jinja2.ChoiceLoader([jinja2.PackageLoader("postroom.web.dashboard", folder) for folder in folders])


class Renderer:
    """Templates are read once, at their first use."""

    def __init__(self, base_url: str, **filters: Callable[[str], Markup]) -> None:
        self.assets = assets.load()
        self.by_url = {asset.url: asset for asset in self.assets.values()}
        self._environment = jinja2.Environment(
            loader=loader(),
            bytecode_cache=COMPILED,
            autoescape=True,
            extensions=[WithoutIndentation, Attributes],
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(
            asset=lambda name: self.assets[name].url,
            base_url=base_url,
            link=link,
            moment=moment,
            fielded=fielded,
            spoken=spoken,
            bounds=limits,
            search_characters=query.MAX_CHARS,
        )
        self._environment.filters.update(
            size=size,
            count=count,
            seconds=seconds,
            path=path_part,
            json=json_text,
            device=device_of,
            **filters,
        )

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        html = self._environment.get_template(template).render(values)
        return Response(html, status, media_type="text/html", headers=HEADERS)


@lru_cache(MOMENTS_KEPT)
def moment(at: int | str | None, exact: bool = False) -> Markup:
    """Return a time in UTC that the script shows in the reader's zone; its title has milliseconds."""
    if at is None:
        return Markup("<span class=muted>never</span>")
    milliseconds = from_iso(at) if isinstance(at, str) else at
    iso = to_iso(milliseconds)
    form, name = ("%d %b %H:%M:%S", "exact") if exact else ("%d %b %H:%M", "short")
    shown = datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(form)
    return Markup('<time class="%s" datetime="%s" title="%s">%s</time>') % (name, iso, iso, shown)


def spoken(name: str) -> str:
    """Return `key.created` as words: "Key created"."""
    return name.replace(".", " ").replace("_", " ").capitalize()


def fielded(text: str) -> list[str]:
    """Split into text and `{{name}}`, alternating."""
    names = [f"{{{{{name}}}}}" for name in FIELD.findall(text)]
    texts = FIELD.split(text)[::2]
    return [part for pair in zip(texts, [*names, ""], strict=True) for part in pair]


def size(number: float) -> str:
    power = 0
    while number >= 1000 and power < len(SIZES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.0f} {SIZES[power]}" if power == 0 or number >= 10 else f"{number:.1f} {SIZES[power]}"


def seconds(number: float | None) -> str:
    """Return the duration; empty if nothing was measured."""
    if number is None:
        return ""
    if number < 1:
        return f"{number * 1000:.0f} ms"
    return f"{number:.1f} s" if number < 10 else f"{number:,.0f} s"


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 message`, `2 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def json_text(value: object) -> str:
    """Return plain text for people: the result of Jinja's `tojson` counts as markup, with its quotes."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_part(value: str) -> str:
    return quote(value, safe="")


def link(path: str, **query: object) -> str:
    """Return a path with the non-empty parameters of its query."""
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path

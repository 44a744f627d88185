"""Pages of the API reference: a page for each group of operations, without a session or a database.

`make generate` writes what they show from the description of the API, as it writes the clients.
"""

import re
from functools import cache, lru_cache
from importlib.resources import files

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import NotFound
from postroom.web.dashboard.display.rendering import Renderer
from postroom.web.packed import FixedResponse

ERRORS, SHAPES = "errors", "shapes"
KEY = "pr_…"  # stands in every example where a key belongs
INLINE = re.compile(r"`([^`]*)`|\[(\w+)\]\(#(\w+)\)")
PAGES_KEPT = 64  # there are fewer


class Phrase(Struct, frozen=True):
    """A part of a sentence: text, code, or the name of a shape."""

    text: str
    is_code: bool = False
    anchor: str = ""


class DescribedField(Struct, rename="camel", frozen=True):
    name: str
    type: str
    about: str
    is_required: bool


class Parameter(DescribedField, rename="camel", frozen=True):
    place: str = msgspec.field(name="in")
    form: str
    choices: list[str]
    example: str


class Operation(Struct, rename="camel", frozen=True):
    id: str
    method: str
    path: str
    title: str
    about: str
    who: str
    is_public: bool
    parameters: list[Parameter]
    fields: list[DescribedField]
    body: str | None
    curl: str
    python: str
    status: int
    answer: str
    result: str
    errors: list[str]

    @property
    def short(self) -> str:
        """The title up to its first break, for the contents."""
        return re.split("[;:,]", self.title)[0]


class Group(Struct, frozen=True):
    name: str
    section: str
    title: str
    about: str
    operations: list[Operation]


class Error(Struct, frozen=True):
    status: int
    code: str
    about: str


class Shape(Struct, frozen=True):
    name: str
    about: str
    fields: list[DescribedField]


class Reference(Struct, frozen=True):
    groups: list[Group]
    errors: list[Error]
    shapes: list[Shape]


def answer(page: str, base_url: str) -> Response:
    """Return a page by the name of its group; "" is the first one."""
    made = render(page, base_url)
    return FixedResponse(made.body, headers=dict(made.headers))


@lru_cache(PAGES_KEPT)
def render(page: str, base_url: str) -> Response:
    """Render a page, the same for everybody. Copy it, since each answer has its own headers."""
    found = load()
    group = next((each for each in found.groups if each.name == page), None)
    if group is None and page not in ("", ERRORS, SHAPES):
        raise NotFound("No such page of the reference. /docs lists them all.")
    kind = "group" if group is not None else page or "start"
    return Renderer(base_url).page(
        f"reference_{kind}.html",
        reference=found,
        group=group,
        sections=sections(found),
        pieces=pieces,
        key_parts=lambda text: text.replace("{base_url}", base_url).split(KEY),
    )


@cache
def load() -> Reference:
    content = files("postroom.web.dashboard").joinpath("reference", "reference.json").read_bytes()
    return msgspec.json.decode(content, type=Reference)


def sections(found: Reference) -> dict[str, list[Group]]:
    by_section: dict[str, list[Group]] = {}
    for group in found.groups:
        by_section.setdefault(group.section, []).append(group)
    return by_section


def pieces(text: str) -> list[Phrase]:
    """Split text into pieces, with code in backticks and links to shapes as in the Markdown reference."""
    found, end = [], 0
    for mark in INLINE.finditer(text):
        code, shape, anchor = mark.groups()
        found.append(Phrase(text[end : mark.start()]))
        found.append(Phrase(code, is_code=True) if shape is None else Phrase(shape, anchor=anchor))
        end = mark.end()
    return [*found, Phrase(text[end:])]

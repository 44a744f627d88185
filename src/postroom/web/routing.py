"""What a route is, and how a request finds its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from msgspec import Struct
from starlette.requests import Request

from postroom.errors import ApiError, MethodNotAllowed, NotFound
from postroom.web.body import read_json

ACCOUNT, SCOPED, PUBLIC = "account", "scoped", "public"


@dataclass(frozen=True, slots=True)
class Route:
    """The types of body, query and answer are those of the handler's signature."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    scope: str
    status: int = 200
    errors: tuple[type[ApiError], ...] = ()
    read: Callable[..., Awaitable[Any]] = read_json
    header: str = ""  # one that must be there
    also: tuple[int, ...] = ()  # other statuses without a body
    before_body: Callable[[Request], object] | None = None
    body: type[Struct] | None = field(init=False)
    query: type[Struct] | None = field(init=False)
    answer: Any = field(init=False)
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        hints = get_type_hints(self.handler, include_extras=True)
        answer = hints["return"]
        object.__setattr__(self, "body", hints.get("body"))
        object.__setattr__(self, "query", hints.get("query"))
        object.__setattr__(self, "answer", getattr(answer, "__metadata__", (answer,))[0])
        object.__setattr__(self, "segments", tuple(self.path.split("/")[1:]))

    @property
    def path_names(self) -> list[str]:
        return [segment[1:-1] for segment in self.segments if segment.startswith("{")]

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The values of the path's names, or None when it is another path."""
        values = {}
        for expected, given in zip(self.segments, segments, strict=True):
            if expected.startswith("{"):
                values[expected[1:-1]] = given
            elif expected != given:
                return None
        return values


class Router:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._by_length: dict[int, list[Route]] = {}
        for route in routes:
            self._by_length.setdefault(len(route.segments), []).append(route)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        segments = path.split("/")[1:] if "\0" not in path else []  # PostgreSQL refuses to look for a NUL
        allowed = []
        for route in self._by_length.get(len(segments), ()):
            values = route.match(segments)
            if values is None:
                continue
            if method in (route.method, "HEAD" if route.method == "GET" else None):
                return route, values
            allowed.append(route.method)
        if allowed:
            raise MethodNotAllowed(f"{path} takes {', '.join(allowed)}, not {method[:20]}.", allow=allowed)
        raise NotFound("No such path. /docs lists them all.")

"""What a route is, and how a request finds it."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import Any, get_type_hints

from msgspec import Struct
from starlette.requests import Request

from postroom.errors import ApiError, MethodNotAllowed, NotFound
from postroom.fields import ScopeFilter
from postroom.web.requests.request_body import read_json

ACCOUNT, POD, SCOPED, PUBLIC = "account", "pod", "scoped", "public"  # which keys a route takes


class Route(Struct, frozen=True, dict=True):
    """A row of the table: an operation, with its path and the keys it takes.

    An operation is a function of `postroom.operations`, `(tx, caller, body, now)` and other named arguments,
    run in one transaction; or, if it is no single transaction (downloads, long waits, uploads), a coroutine
    that is given the call. The types of body, query and answer are those of its signature.
    """

    method: str
    path: str
    operation: Callable[..., Any]
    scope: str
    permissions: tuple[str, ...]  # any of these
    status: int = 200
    errors: tuple[type[ApiError], ...] = ()
    read: Callable[..., Awaitable[Any]] = read_json
    header: str = ""  # one that must be there
    may_lack_header: bool = False  # it must be there only for some requests
    is_versioned: bool = False  # takes If-Match with the version that the caller has seen
    is_repeatable: bool = False  # the same clientId again: 200, with what is there
    also: tuple[int, ...] = ()  # other statuses without a body
    before_body: Callable[[Request], object] | None = None
    answers_gone: bool = False  # a repeated request is answered even if what it names is gone
    proves: bool = False  # checks in its own transaction whether caller and inbox are unchanged
    prepare: Callable[..., Awaitable[dict[str, Any]]] | None = None  # before the transaction; more arguments
    after: Callable[..., Awaitable[None]] | None = None  # with what the verb returned, after the commit
    word: str = ""  # the permission of the /v0 interface that a key needs
    is_kept: bool = False  # cached while nothing was written
    seconds: float = 0.0  # set: a long read with this limit, next to all others

    # Computed on first use: inspecting every signature at the start would take long.

    @cached_property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @cached_property
    def is_verb(self) -> bool:
        return not inspect.iscoroutinefunction(self.operation)

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """The names of the operation's arguments."""
        return tuple(inspect.signature(self.operation).parameters)[1:]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.operation, include_extras=True)

    @cached_property
    def body(self) -> type[Struct] | None:
        return self._hints.get("body")

    @cached_property
    def query(self) -> type[Struct] | None:
        return self._hints.get("query") or self._scope_filter()

    @cached_property
    def answer(self) -> Any:
        answer = type(None) if self.after is not None else self._hints["return"]
        return getattr(answer, "__metadata__", (answer,))[0]

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @cached_property
    def named(self) -> tuple[tuple[int, str], ...]:
        """The positions of the path's names."""
        return tuple(
            (place, segment[1:-1]) for place, segment in enumerate(self.segments) if segment[:1] == "{"
        )

    def _scope_filter(self) -> type[Struct] | None:
        """Return the filters of a query, which may narrow an operation if its path names no inbox or pod."""
        names_one = "{inbox_id}" in self.path or "{pod_id}" in self.path
        return ScopeFilter if "within" in self.wanted and not names_one else None

    @property
    def path_names(self) -> list[str]:
        return [name for _, name in self.named]


get, post, put, patch, delete = (
    partial(Route, method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
)  # rows of a table

Found = tuple[Route, dict[str, str]]  # with the values of its path's names
Positions = tuple[int, ...]  # of the fixed segments of a path
Segments = tuple[str, ...]  # the fixed segments themselves
OF_ADDRESSES = (("v1", "contacts"), ("v1", "suppressions"))  # paths that go on with an address


class Router:
    """Finds a route by the fixed segments of its path; the number of routes makes no difference."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._shapes: dict[int, dict[Positions, dict[Segments, list[Route]]]] = {}  # by length first
        for route in routes:
            fixed = tuple(place for place, segment in enumerate(route.segments) if segment[:1] != "{")
            by_words = self._shapes.setdefault(len(route.segments), {}).setdefault(fixed, {})
            by_words.setdefault(tuple(route.segments[place] for place in fixed), []).append(route)
        for length, by_places in self._shapes.items():  # a fixed segment counts before a name
            self._shapes[length] = dict(sorted(by_places.items(), key=lambda shape: -len(shape[0])))

    def find(self, method: str, path: str) -> Found | ApiError:
        """Return the route or, if there is none, the error, which is raised after the earlier checks."""
        segments = path.split("/")[1:] if "\0" not in path else []  # PostgreSQL refuses to look for a NUL
        return self.find_segments(method, path, segments)

    def find_segments(self, method: str, path: str, segments: Sequence[str]) -> Found | ApiError:
        wanted = "GET" if method == "HEAD" else method
        allowed = []
        for fixed, by_words in self._shapes.get(len(segments), {}).items():
            for route in by_words.get(tuple([segments[place] for place in fixed]), ()):
                if route.method == wanted:
                    return route, {name: segments[place] for place, name in route.named}
                allowed.append(route.method)
        if allowed:
            reason = f"{path} accepts {', '.join(allowed)}, not {method[:20]}."
            return MethodNotAllowed(reason, allow=allowed)
        if (joined := _with_whole_address(segments)) is not None:
            return self.find_segments(method, path, joined)
        return NotFound("No such path. /docs lists them all.")


def inbox_of_path(found: Found | ApiError | None) -> str | None:
    """Read together with the key: ownership is checked before a body is read."""
    return None if found is None or isinstance(found, ApiError) else found[1].get("inbox_id")


def _with_whole_address(segments: Sequence[str]) -> list[str] | None:
    """Return the segments with an address that has slashes as one of them (RFC 5322 section 3.2.3)."""
    if tuple(segments[:2]) not in OF_ADDRESSES:
        return None
    end = max((place for place, segment in enumerate(segments) if "@" in segment), default=0)
    return [*segments[:2], "/".join(segments[2 : end + 1]), *segments[end + 1 :]] if end > 2 else None

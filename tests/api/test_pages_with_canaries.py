"""No text becomes markup: every page with canaries in all that a stranger or an agent can fill."""

import itertools
import re
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx2
import msgspec
import pytest
from msgspec import inspect

from postroom.clock import MINUTE
from postroom.web.dashboard.routes import PAGES
from postroom.web.routing import Route
from tests.elements import Element, elements_of
from tests.page_canaries import Canaries, Grown, grown

pytestmark = pytest.mark.sqlite_alone
ADDRESSES = {"href", "src", "action", "formaction", "data", "poster", "hx-get", "hx-post", "hx-ws:connect"}
KEPT_OUT = {"about:blank", "#"}
OF_A_MAIL = re.compile(
    r"/app/messages/[^/]+/html"
)  # a document of its own, without scripts and without a frame's origin
LAST = (
    "/delete",
    "/revoke",
    "/remove",
    "/end",
    "/sign-out",
    "/rotate",
)  # what they do away with is seen before
AT_ONCE = 500
# Given, and shown on no page so far.
NOT_SHOWN = {
    "agent of a weak key",
    "header of a draft",
    "HTML of a draft",
    "idempotency key",
    "metadata of a draft",
    "name in Reply-To",
    "organizer of an appointment",
    "refused subject",
    "Reply-To of a draft",
    "uid of an appointment",
    "webhook's status line",
}


class Visitor:
    """Looks at pages, and remembers which canaries were on them."""

    def __init__(self, account: Grown) -> None:
        self._account = account
        self._visits = 0
        self.base_url = account.house.base_url
        self.seen: set[str] = set()
        self._judged: defaultdict[tuple[bool, str], set[Element]] = defaultdict(set)
        self.page = httpx2.Client(base_url=self.base_url, timeout=120, verify=False)
        self.page.headers.update({"Origin": self.base_url, "Accept": "text/html"})

    def sign_in(self) -> None:
        text = self._account.canaries.text
        form = {
            "link": self._account.house.login_link().partition("link=")[2],
            "name": text("name of a person"),
        }
        headers = {"User-Agent": text("agent of a browser")}
        assert self.page.post("/app/sign-in", data=form, headers=headers).status_code == 303

    def look(self, method: str, path: str, **form: object) -> httpx2.Response:
        self._visits += 1
        if self._visits % AT_ONCE == 0:
            self._account.house.clock.turn(MINUTE)
        answer = self.page.request(method, path, data=form or None)
        assert answer.status_code < 500, (method, path, answer.text)
        if answer.headers.get("content-type", "").startswith("text/html"):
            self.judge(f"{method} {path} {form}", path, answer.text)
        if answer.status_code == 303:
            self.look("GET", answer.headers["location"])
        return answer

    def judge(self, what: str, path: str, html: str) -> None:
        self.seen.update(re.findall(r"canary\d+x", html))
        found = re.search(r'"nonce": "(\w+)"', html)
        is_mail, nonce = bool(OF_A_MAIL.match(path)), found[1] if found else ""
        known = self._judged[is_mail, nonce]
        for element in set(elements_of(html)) - known:
            assert not acts(element), f"{what}: {element}"
            if not is_mail:
                self.require_own(element, what)
            if nonce and any(name.startswith("hx-") for name, _ in element.attributes):
                assert element.get("hx-nonce") == nonce or is_shut(element), f"{what}: {element}"
            known.add(element)

    def require_own(self, element: Element, what: str) -> None:
        for name, value in element.attributes:
            if name in ADDRESSES and value not in KEPT_OUT:
                assert is_below(self.base_url, value), f"{what}: {element}"


@cache
def is_below(base_url: str, value: str) -> bool:
    return urllib.parse.urljoin(f"{base_url}/app/", value).startswith(f"{base_url}/")


def acts(element: Element) -> bool:
    """A canary, or a piece of it, as name or as attribute of htmx."""
    names = [name for name, _ in element.attributes]
    hx = [value for name, value in element.attributes if name.startswith(("hx-", "data-hx-"))]
    is_named = "canary" in element.name or any("canary" in name for name in names)
    return is_named or any(re.match(r"canary\d", value) for value in hx) or "hx-trigger=load" in names


def is_shut(element: Element) -> bool:
    return [name for name, _ in element.attributes if name.startswith("hx-")] == ["hx-ignore"]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    folder: Path = tmp_path_factory.mktemp("canaries")
    with grown(folder) as opened:
        yield opened


def test_no_page_makes_markup_of_a_text(account: Grown) -> None:
    visitor, planted = Visitor(account), list(account.canaries.places)
    with visitor.page:
        for path in ("/app/sign-in", *account.review_paths, "/review/none", *odd_paths(account.canaries)):
            visitor.look("GET", path)
        visitor.sign_in()
        opened = [path for route in PAGES if route.method == "GET" for path in paths_of(route, account)]
        for path in (*opened, *odd_paths(account.canaries)):
            visitor.look("GET", path)
        for route in sorted(PAGES, key=lambda route: route.path.endswith(LAST)):
            if route.method != "GET":
                visitor.look("POST", fixed_path(route, account), **form_of(route, account))
        visitor.look("POST", "/app/sign-in", key=account.canaries.text("wrong key"), name="x")
    shown = {place for number, place in enumerate(planted) if f"canary{number}x" in visitor.seen}
    assert set(planted) - shown <= NOT_SHOWN
    assert len(shown) >= 55


def odd_paths(canaries: Canaries) -> list[str]:
    """Of pages that are not there, and of a part that names the page that it belongs to."""
    odd = canaries.path("path of a page")
    return [
        f"/app/{odd}",
        f"/app/mail/{odd}",
        f"/app/settings/{odd}/x",
        f"/app/sign-in?next={odd}&link={odd}",
        f"/review/{odd}",
    ]


def paths_of(route: Route, account: Grown) -> Iterator[str]:
    """With every id that there is, and every value of every field of its query; texts are canaries."""
    for given in itertools.product(*(account.ids[name] for name in route.path_names)):
        values = dict(zip(route.path_names, given, strict=True))
        path = route.path.format(**values)
        yield path
        messages = account.threads.get(values.get("thread_id", ""), [])
        around = {"message": messages[-1]} if messages else {}
        for query in queries_of(route, account, around):
            yield f"{path}?{urllib.parse.urlencode(query)}"


def queries_of(route: Route, account: Grown, around: dict[str, str]) -> Iterator[dict[str, str]]:
    known = {"inboxId": account.ids["inbox_id"], "podId": account.ids["pod_id"]}
    for field in fields_of(route.query):
        name = field.encode_name
        for value in [
            *values_of(field, route, account),
            *known.get(name, []),
            *([around[name]] if name in around else []),
        ]:
            yield {**around, name: value}


def fields_of(kind: type[msgspec.Struct] | None) -> tuple[inspect.Field, ...]:
    if kind is None:
        return ()
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found.fields


def values_of(field: inspect.Field, route: Route, account: Grown) -> list[str]:
    kind = field.type.item_type if isinstance(field.type, inspect.ListType) else field.type
    if isinstance(kind, inspect.LiteralType):
        return [str(value) for value in kind.values]
    if isinstance(kind, inspect.BoolType):
        return ["true"]
    if isinstance(kind, inspect.IntType):
        return ["1"]
    return [account.canaries.text(f"{field.encode_name} of {route.name}")]


def fixed_path(route: Route, account: Grown) -> str:
    return route.path.format(**{name: account.ids.get(name, ["none"])[0] for name in route.path_names})


def form_of(route: Route, account: Grown) -> dict[str, object]:
    return {field.encode_name: values_of(field, route, account)[0] for field in fields_of(route.body)}

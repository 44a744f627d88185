"""Text in attributes of templates: always escaped, and addresses only lead to this server.

Jinja leaves markup as it is, which is right between elements and unsafe inside quotes.
"""

import re
from collections.abc import Iterator

from jinja2 import Environment, TemplateSyntaxError, pass_environment
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

# Attributes that a browser, or htmx, requests.
ADDRESSES = {"href", "src", "action", "formaction", "hx-get", "hx-post"}
# These contain a program or a style; no value belongs there.
PROGRAMS = re.compile(r"on.*|style|srcdoc|hx-(?!get$|post$|trigger$|select$|nonce$).*|data-hx-.*")
TEXT_FILTER = "attribute_text"
ADDRESS_FILTER = "own_address"

_TAG = re.compile(r"<!--.*?-->|<(/?[a-zA-Z][^\s/>]*)", re.DOTALL)
_IN_TAG = re.compile(r"""([^\s"'=<>/]+)\s*=\s*(["'])|>""")
_LOOKS_LIKE_A_TAG = re.compile(r"""([\s"'][\w:-]+\s*=\s*["']?|</?)\Z""")
_OWN_PATH = re.compile(r"(/(?![/\\])|[?#])[^\s\\]*")


class Place:
    """The position in the HTML that the text of a template has reached."""

    def __init__(self) -> None:
        self.tag = ""  # its name, while inside one
        self.attribute = ""  # its name, while inside its quotes
        self.is_begun = False  # the quotes contain something already
        self.program = ""  # the element, while inside a script or a style
        self._quote = ""

    def go_on(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self._step(text, at)

    def _step(self, text: str, at: int) -> int:
        if self.attribute:
            return self._in_quotes(text, at)
        return self._in_tag(text, at) if self.tag else self._between_tags(text, at)

    def _in_quotes(self, text: str, at: int) -> int:
        end = text.find(self._quote, at)
        if end < 0:
            self.is_begun = True
            return len(text)
        self.attribute = ""
        return end + 1

    def _in_tag(self, text: str, at: int) -> int:
        found = _IN_TAG.search(text, at)
        if found is None:
            return len(text)
        if found[1]:
            self.attribute, self._quote, self.is_begun = found[1].lower(), found[2], False
        else:
            self.program = self.tag if self.tag in ("script", "style") else ""
            self.tag = ""
        return found.end()

    def _between_tags(self, text: str, at: int) -> int:
        found = (
            re.compile(f"(?i)<(/{self.program})").search(text, at) if self.program else _TAG.search(text, at)
        )
        if found is None:
            return len(text)
        self.tag = (found[1] or "").lower()
        return found.end()


class Attributes(Extension):
    """Expressions inside quotes of an attribute go through a filter; elsewhere in a tag they are refused."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters.update({TEXT_FILTER: attribute_text, ADDRESS_FILTER: own_address})

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        place, before, filter_name = Place(), "", ""
        for token in stream:
            if token.type == "variable_end" and filter_name:
                yield from _tokens(token.lineno, ("rparen", ")"), ("pipe", "|"), ("name", filter_name))
            yield token
            if token.type == "data":
                place.go_on(token.value)
                before = token.value
            elif token.type == "variable_begin":
                filter_name = filter_of(place, before, token.lineno, stream)
                place.is_begun, before = True, ""
                if filter_name:
                    yield from _tokens(token.lineno, ("lparen", "("))


def _tokens(line: int, *parts: tuple[str, str]) -> Iterator[Token]:
    return (Token(line, kind, value) for kind, value in parts)


def filter_of(place: Place, before: str, line: int, stream: TokenStream) -> str:
    """Return None between elements, where Jinja's own escaping is right."""
    if place.attribute:
        if PROGRAMS.fullmatch(place.attribute):
            raise TemplateSyntaxError(f"No value goes into {place.attribute}.", line, stream.name)
        is_address = place.attribute in ADDRESSES and not place.is_begun
        return ADDRESS_FILTER if is_address else TEXT_FILTER
    if place.tag or place.program or _LOOKS_LIKE_A_TAG.search(before):
        raise TemplateSyntaxError(
            "In a tag, a value stands in the quotes of an attribute.", line, stream.name
        )
    return ""


def attribute_text(value: object) -> str:
    """Return plain text even of markup, so that it is escaped again."""
    return str(value)


@pass_environment
def own_address(environment: Environment, value: object) -> str:
    """Return an address on this server, or `#`, which leads nowhere."""
    address = str(value)
    path = address.removeprefix(str(environment.globals["base_url"]))
    return address if _OWN_PATH.fullmatch(path) else "#"

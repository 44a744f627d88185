"""The CSS a mail brings along: declarations of inline styles and of simple rules in style sheets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from postroom.mail.html.markup import names

MAX_SHEET_CHARS = 200_000
MAX_STYLE_CHARS = 10_000
MAX_RULES = 5_000
MAX_CLASSES = 16

# Properties that can hide text or bring it back; the others are not kept.
PROPERTIES = names(
    "display visibility content-visibility opacity font font-size color -webkit-text-fill-color "
    "background background-color background-image width height max-width max-height overflow overflow-x "
    "overflow-y text-indent position left top right bottom margin-left clip clip-path transform"
)
SCREEN_MEDIA = frozenset({"all", "screen", "only screen"})
_SHORTHANDS = {
    "background": ("background-color", "background-image"),
    "overflow": ("overflow-x", "overflow-y"),
}

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_SELECTOR = re.compile(r"(\*|[a-z][a-z0-9]*)?([.#][^\s.#:\[>+~*,]+)?")

Declarations = Mapping[str, str]


@dataclass(slots=True)
class StyleBlock:
    """Declarations of one rule; an important one outweighs inline styles."""

    normal: dict[str, str] = field(default_factory=dict)
    important: dict[str, str] = field(default_factory=dict)

    def add(self, other: "StyleBlock") -> None:
        override(self.normal, other.normal)
        override(self.important, other.important)


def override(target: dict[str, str], newer: Declarations) -> None:
    """Newer declarations win, and a shorthand resets the parts it stands for."""
    for name, value in newer.items():
        for part in _SHORTHANDS.get(name, ()):
            target.pop(part, None)
        target.pop(name, None)
        target[name] = value


def parse_block(text: str) -> StyleBlock:
    block = StyleBlock()
    for declaration in _COMMENT.sub(" ", text[:MAX_STYLE_CHARS]).split(";"):
        name, colon, value = declaration.partition(":")
        name = _plain(name)
        if not colon or name not in PROPERTIES:
            continue
        value, bang, _ = _plain(value).partition("!")
        override(block.important if bang else block.normal, {name: value.strip()})
    return block


def _plain(text: str) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return text.strip().lower()


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


@dataclass(slots=True)
class Sheet:
    """Rules by their selector: `tag`, `.class`, `#id`, `tag.class`, `tag#id` or `*`."""

    rules: dict[str, StyleBlock] = field(default_factory=dict)

    def read(self, css: str) -> None:
        for selectors, body in _rules(_COMMENT.sub(" ", css[:MAX_SHEET_CHARS])):
            block = parse_block(body)
            if block.normal or block.important:
                for selector in selectors.split(","):
                    self._add(_plain(selector), block)

    def _add(self, selector: str, block: StyleBlock) -> None:
        if selector and _SELECTOR.fullmatch(selector) and len(self.rules) < MAX_RULES:
            self.rules.setdefault(selector.removeprefix("*") or "*", StyleBlock()).add(block)

    def declarations(self, tag: str, attributes: Declarations) -> Declarations:
        """What holds for an element: rules by rising weight, then its own style, then important rules."""
        own = parse_block(attributes["style"]) if "style" in attributes else None
        blocks = list(self._matching(tag, attributes)) if self.rules else []
        if own is not None:
            blocks.append(own)
        result: dict[str, str] = {}
        for block in blocks:
            override(result, block.normal)
        for block in blocks:
            override(result, block.important)
        return result

    def _matching(self, tag: str, attributes: Declarations) -> Iterator[StyleBlock]:
        classes = attributes.get("class", "").lower().split()[:MAX_CLASSES]
        selectors = ["*", tag, *(f".{name}" for name in classes), *(f"{tag}.{name}" for name in classes)]
        if identity := attributes.get("id", "").strip().lower():
            selectors += [f"#{identity}", f"{tag}#{identity}"]
        return (self.rules[selector] for selector in selectors if selector in self.rules)


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and bodies. Rules inside @media count when the query holds on every screen."""
    start, skipped_depth, media_depth = 0, 0, 0
    prelude = ""
    for brace in _BRACE.finditer(css):
        text, start = css[start : brace.start()], brace.end()
        if brace.group() == "{":
            prelude = text.rpartition(";")[2].strip() if not skipped_depth else prelude
            if skipped_depth or (prelude.startswith("@") and not _is_screen_rule(prelude)):
                skipped_depth += 1
            elif prelude.startswith("@"):
                media_depth, prelude = media_depth + 1, ""
        elif skipped_depth:
            skipped_depth -= 1
        elif prelude:
            yield prelude, text
            prelude = ""
        elif media_depth:
            media_depth -= 1


def _is_screen_rule(prelude: str) -> bool:
    words = prelude.split(None, 1)
    return len(words) == 2 and words[0].lower() == "@media" and is_for_screens(words[1])


def is_for_screens(media: str) -> bool:
    """Whether a media query list holds on every screen, whatever its size."""
    return any(" ".join(query.lower().split()) in SCREEN_MEDIA for query in media.split(","))

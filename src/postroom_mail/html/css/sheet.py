"""Style sheets of an email: rules with their weight, indexed by their last compound selector."""

import re
from collections import defaultdict
from collections.abc import Callable, Set

from msgspec import Struct, field

from postroom_mail.html.css import conditions
from postroom_mail.html.css.conditions import Answer, both
from postroom_mail.html.css.declarations import DeclarationReader, Style, StyleBlock, without_comments
from postroom_mail.html.css.selector_reading import NotASelector, read_list
from postroom_mail.html.css.selectors import Selector

MAX_SHEET_CHARS = 200_000
MAX_RULES = 5_000
MAX_NESTING = 8
MAX_LAYERS = 200
UNLAYERED = 1_000_000

_BREAK = re.compile(r"[{};\"']|<!--|-->")
_KEYFRAME = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%|from|to")
_LAYER_NAME = re.compile(r"[\w.-]{0,200}")


class StyleRule(Struct, eq=False):
    """One selector and its declarations. `is_sure` is False if a condition around it is unknown."""

    selector: Selector
    block: StyleBlock
    is_sure: bool
    layer: int
    order: int

    @property
    def weight(self) -> tuple[int, tuple[int, int, int], int]:
        return self.layer, self.selector.specificity, self.order

    @property
    def weight_of_important(self) -> tuple[int, tuple[int, int, int], int]:
        """Among important declarations the first layer wins (CSS Cascade 5, section 6.4.4)."""
        return -self.layer, self.selector.specificity, self.order


class Sheet(Struct):
    """All sheets of an email. Costs nothing if there are none."""

    declarations: DeclarationReader
    ignores_case: bool
    rules: list[StyleRule] = field(default_factory=list)
    by_identity: dict[str, list[StyleRule]] = field(default_factory=lambda: defaultdict(list))
    by_class: dict[str, list[StyleRule]] = field(default_factory=lambda: defaultdict(list))
    by_type: dict[str, list[StyleRule]] = field(default_factory=lambda: defaultdict(list))
    others: list[StyleRule] = field(default_factory=list)
    keyframes: dict[str, Style] = field(default_factory=dict)
    layers: dict[str, int] = field(default_factory=dict)
    initials: dict[str, str] = field(default_factory=dict)  # of custom properties
    asks_siblings: bool = False
    asks_attributes: bool = False
    is_cut: bool = False  # there was more than is read

    def read(self, css: str) -> None:
        self.is_cut = self.is_cut or len(css) > MAX_SHEET_CHARS
        _Reading(self, without_comments(css[:MAX_SHEET_CHARS])).rules(_Context())

    def add(self, selector: Selector, block: StyleBlock, is_sure: bool, layer: int) -> None:
        if selector.key.is_never:
            return
        self.rules.append(StyleRule(selector, block, is_sure, layer, len(self.rules)))

    @property
    def count(self) -> int:
        return len(self.rules)

    def keep_possible(self, types: Set[str], classes: Set[str], identities: Set[str]) -> None:
        """Keeps only rules that can match elements with these, and indexes them."""
        self.rules = [rule for rule in self.rules if rule.selector.is_possible(types, classes, identities)]
        for rule in self.rules:
            selector, key = rule.selector, rule.selector.key
            self.asks_siblings = self.asks_siblings or selector.asks_siblings
            self.asks_attributes = self.asks_attributes or selector.asks_attributes
            if key.identity:
                self.by_identity[key.identity].append(rule)
            elif key.classes:
                self.by_class[key.classes[0]].append(rule)
            elif key.type:
                self.by_type[key.type].append(rule)
            else:
                self.others.append(rule)

    def candidates(self, name: str, classes: frozenset[str], identity: str) -> list[StyleRule]:
        """Return the rules that may match an element, by rising weight."""
        found = [*self.others, *self.by_type.get(name, ())]
        for each in classes:
            found += self.by_class.get(each, ())
        if identity:
            found += self.by_identity.get(identity, ())
        return sorted(found, key=_weight) if len(found) > 1 else found

    def layer(self, name: str) -> int:
        """Return the rank of a layer, given when it is first named; each unnamed one is its own."""
        if name not in self.layers and len(self.layers) < MAX_LAYERS:
            self.layers[name] = len(self.layers)
        return self.layers.get(name, 0)


def _weight(rule: StyleRule) -> tuple[int, tuple[int, int, int], int]:
    return rule.weight


class _Context(Struct, frozen=True):
    """What surrounds a rule."""

    answer: Answer = True
    layer: int = UNLAYERED
    layer_name: str = ""
    around: str = ""  # the selectors of the rule that this one is nested in
    depth: int = 0

    def when(self, answer: Answer) -> "_Context":
        return _Context(both((self.answer, answer)), self.layer, self.layer_name, self.around, self.depth + 1)


class _Reading:
    """One sheet from its beginning to its end."""

    def __init__(self, sheet: Sheet, css: str) -> None:
        self.sheet = sheet
        self.css = css
        self.breaks = _BREAK.finditer(css)
        self.start = 0

    def _next(self) -> tuple[str, str]:
        """Return the text up to the next mark outside of quotes, and the mark; "" at the end."""
        begun = self.start
        quote = ""
        for found in self.breaks:
            sign = found[0]
            if sign in ("<!--", "-->"):
                if not quote and not self.css[begun : found.start()].strip():
                    begun = found.end()
            elif quote:
                quote = "" if sign == quote else quote
            elif sign in "\"'":
                quote = sign
            else:
                self.start = found.end()
                return self.css[begun : found.start()], sign
        self.start = len(self.css)
        return self.css[begun:], ""

    def rules(self, context: _Context) -> None:
        """Reads up to the closing brace. Inside a rule, declarations are between nested rules."""
        own: list[str] = []
        while True:
            text, sign = self._next()
            text = text.strip()
            if sign == "{":
                self._opened(text, context)
                continue
            if text.startswith("@"):
                self._statement(text)
            elif text:
                own.append(text)
            if sign in ("}", ""):
                if own and context.around:
                    self._declare(context.around, ";".join(own), context)
                if sign == "" or context.depth:
                    return
                own.clear()

    def _statement(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word.lower() == "@layer":
            for name in rest.split(","):
                self.sheet.layer(name.strip())
        elif word.lower() == "@import" and "data:" in rest.lower():
            self.sheet.is_cut = True  # a sheet in an address is only written to hide it

    def _opened(self, prelude: str, context: _Context) -> None:
        if context.depth >= MAX_NESTING:
            self._skip()
        elif prelude.startswith("@"):
            self._at_rule(prelude, context)
        else:
            self._rule(prelude, context)

    def _rule(self, prelude: str, context: _Context) -> None:
        around = _nested(context.around, prelude) if context.around else prelude
        self.rules(_Context(context.answer, context.layer, context.layer_name, around, context.depth + 1))

    def _at_rule(self, prelude: str, context: _Context) -> None:
        name, _, rest = prelude.replace("(", " (", 1).partition(" ")
        name = name.lower()
        if name in ("@media", "@supports"):
            evaluate: Callable[[str], Answer]
            evaluate = conditions.holds_media if name == "@media" else conditions.holds_support
            answer = evaluate(rest)
            if answer is False:
                self._skip()
            else:
                self.rules(context.when(answer))
        elif name == "@layer":
            self._layer(rest.strip(), context)
        elif name in ("@keyframes", "@-webkit-keyframes"):
            self._keyframes(rest.strip())
        elif name == "@property":
            self._property(rest.strip())
        elif name in ("@container", "@scope", "@document", "@-moz-document", "@starting-style"):
            self.rules(context.when(None if name in ("@container", "@scope") else False))
        else:
            self._skip()

    def _layer(self, name: str, context: _Context) -> None:
        name = name if _LAYER_NAME.fullmatch(name) and name else f" {len(self.sheet.layers)}"
        full = f"{context.layer_name}.{name}" if context.layer_name else name
        layer = self.sheet.layer(full)
        self.rules(_Context(context.answer, layer, full, context.around, context.depth + 1))

    def _keyframes(self, name: str) -> None:
        """Keep only the final state of keyframes."""
        last, most = Style(), -1.0
        while True:
            text, sign = self._next()
            if sign != "{":
                break
            found = [_percentage(each[0]) for each in _KEYFRAME.finditer(text.lower())]
            body, sign = self._next_block()
            if found and max(found) >= most:
                block = self.sheet.declarations.read(body)
                last, most = block.normal, max(found)
        self.sheet.keyframes[name.strip("\"'")] = last

    def _property(self, name: str) -> None:
        for declaration in self._next_block()[0].split(";"):
            written, _, value = declaration.partition(":")
            if written.strip().lower() == "initial-value":
                self.sheet.initials[name] = value.strip()

    def _next_block(self) -> tuple[str, str]:
        parts = []
        while True:
            text, sign = self._next()
            parts.append(text)
            if sign in ("}", "", "{"):
                return ";".join(parts), sign

    def _skip(self) -> None:
        depth = 1
        while depth:
            _, sign = self._next()
            if not sign:
                return
            depth += {"{": 1, "}": -1}.get(sign, 0)

    def _declare(self, prelude: str, body: str, context: _Context) -> None:
        if context.answer is False:
            return
        block = self.sheet.declarations.read(body)
        if not (block.normal or block.important):
            return
        if self.sheet.count + prelude.count(",") >= MAX_RULES:
            self.sheet.is_cut = True
            return
        try:
            selectors = read_list(prelude, self.sheet.ignores_case)
        except NotASelector:
            return
        for selector in selectors:
            self.sheet.add(selector, block, context.answer is True, context.layer)


def _nested(around: str, prelude: str) -> str:
    """Return the expanded selector of a nested rule (CSS Nesting, section 3)."""
    outer = f":is({around})"
    parts = (part.strip() for part in prelude.split(","))
    return ",".join(part.replace("&", outer) if "&" in part else f"{outer} {part}" for part in parts)


def _percentage(written: str) -> float:
    if written in ("from", "to"):
        return 0.0 if written == "from" else 100.0
    return float(written[:-1])

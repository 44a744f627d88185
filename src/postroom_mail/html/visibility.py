"""What a reader would see: the look of each element, from style sheets, its own style and defaults."""

import re
from collections.abc import Mapping, Sequence

from postroom_mail.html import look as looks
from postroom_mail.html.css import colors
from postroom_mail.html.css.declarations import (
    UNDECIDED,
    DeclarationReader,
    Style,
    StyleBlock,
    declared,
    set_all,
)
from postroom_mail.html.css.selectors import MatchBudget, PlacedElement
from postroom_mail.html.css.sheet import Sheet, StyleRule
from postroom_mail.html.css.values import words
from postroom_mail.html.look import Look
from postroom_mail.html.markup import Open, names

# No honest mail has more; what comes after so many is not shown, since it might be meant to be hidden.
MAX_LOOKS = 4_000
MAX_CLASSES = 16
MAX_STEPS = 100_000
MAX_DOUBTS = 8
MAX_SUBSTITUTIONS = 20
MAX_VALUE_CHARS = 2_000
STYLING_ATTRIBUTES = (
    "style", "class", "id", "hidden", "bgcolor", "background", "color", "text", "open", "popover", "size",
)  # fmt: skip

NEVER_SHOWN = names("title script style template iframe noembed noframes audio video svg meter progress area")
# Shown or not: a canvas shows its words where no scripts run, as in most mail clients, not in webmail; the
# others are hidden inside of formulas (MathML Core, section 3.3) and shown outside.
_IN_DOUBT = names("canvas annotation annotation-xml mphantom")
# Not shown unless the email says otherwise.
_NOT_DISPLAYED = names("datalist rp")
_CONTROLS = names("button select textarea")
_SPECIAL = NEVER_SHOWN | _IN_DOUBT | _NOT_DISPLAYED | _CONTROLS | names("a mark details dialog summary table")
_VARIABLE = re.compile(
    r"var\(\s*+(--[^\s,()]++)\s*+(?:,((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+))?\)", re.IGNORECASE
)


class ElementKind:
    """Elements with the same declarations, as far as their start tags show."""

    __slots__ = ("around", "attributes", "before", "classes", "doubts", "identity", "is_plain", "name",
                 "number", "number_of_type", "own", "parent", "presented", "rules")  # fmt: skip

    def __init__(self, tag: Open, ignores_case: bool) -> None:
        attributes = tag.attributes
        written, identity = attributes.get("class", ""), attributes.get("id", "").strip()
        if ignores_case:
            written, identity = written.lower(), identity.lower()
        self.name = tag.name
        self.attributes = attributes
        self.classes = frozenset(written.split()[:MAX_CLASSES]) if written else _NO_CLASSES
        self.identity = identity
        self.own: StyleBlock | None = None
        self.presented: Style = {}
        self.rules: list[StyleRule] = []  # that hold in any case
        self.doubts: list[StyleRule] = []  # that may hold
        self.around: list[StyleRule] = []  # that depend on what surrounds the element
        self.parent: PlacedElement | None = None
        self.before: PlacedElement | None = None
        self.number = self.number_of_type = 1
        self.is_plain = False  # it looks like its parent, whatever that is


_NO_CLASSES: frozenset[str] = frozenset()
_IMPLIED = frozenset({"html", "head", "body", "tbody"})


class ComputedStyles:
    """Computed styles of elements, each made once for all of a kind in parents that look the same."""

    def __init__(self, is_old_page: bool) -> None:
        self.is_old_page = is_old_page
        self.declarations = DeclarationReader(is_old_page)
        self.sheet = Sheet(self.declarations, ignores_case=is_old_page)
        self.steps = MatchBudget(MAX_STEPS)
        self._kinds: dict[object, ElementKind] = {}  # by the keys of tags
        self._by_styling: dict[tuple[object, ...], ElementKind] = {}
        self._known: dict[tuple[object, ...], Look] = {}
        self._same: dict[tuple[object, ...], Look] = {}

    @property
    def has_rules(self) -> bool:
        return self.sheet.count > 0

    def bare_page(self) -> Look:
        look = Look()
        look.custom = self.sheet.initials
        look.doubt = self.sheet.is_cut
        return look

    def forget_impossible(self, tags: Sequence[Open]) -> None:
        """Drops rules for elements that are not in the email, such as those for certain mail clients."""
        if not self.sheet.count:
            return
        classes = " ".join(tag.attributes.get("class", "") for tag in tags)
        identities = {tag.attributes.get("id", "").strip() for tag in tags}
        if self.is_old_page:
            classes, identities = classes.lower(), {identity.lower() for identity in identities}
        self.sheet.keep_possible({tag.name for tag in tags} | _IMPLIED, set(classes.split()), identities)

    def kind(self, tag: Open) -> ElementKind:
        known = self._kinds.get(tag.key)
        if known is None:
            known = self._kinds[tag.key] = self._find_kind(tag)
        return known

    def compute(self, kind: ElementKind, parent: Look, place: PlacedElement) -> Look:
        """Return the look of an element inside its parent; the parent's own when nothing changes."""
        if parent.removed:
            return parent
        if kind.is_plain:
            return parent.inside
        if kind.around:
            return self._compute_in_place(kind, parent, place)
        known = self._known.get((kind, parent))
        if known is None:
            known = self._known[kind, parent] = self._made(kind, parent, kind.rules, kind.doubts)
        return known

    def _compute_in_place(self, kind: ElementKind, parent: Look, place: PlacedElement) -> Look:
        rules, doubts = kind.rules, kind.doubts
        for rule in kind.around:
            fits = rule.selector.fits(place, self.steps)
            if fits and rule.is_sure:
                rules = [*rules, rule]
            elif fits is not False:
                doubts = [*doubts, rule]
        key = (kind, parent, *map(id, rules), 0, *map(id, doubts))
        known = self._known.get(key)
        if known is None:
            rules = sorted(rules, key=_weight) if rules is not kind.rules else rules
            known = self._known[key] = self._made(kind, parent, rules, doubts)
        return known

    def _find_kind(self, tag: Open) -> ElementKind:
        if self.sheet.asks_attributes:
            return self._new_kind(tag)
        attributes = tag.attributes
        key: tuple[object, ...] = (tag.name,)
        if attributes:
            key = (tag.name, "href" in attributes, *map(attributes.get, STYLING_ATTRIBUTES))
        known = self._by_styling.get(key)
        if known is None:
            known = self._by_styling[key] = self._new_kind(tag)
        return known

    def _new_kind(self, tag: Open) -> ElementKind:
        kind = ElementKind(tag, self.is_old_page)
        kind.presented = browser_style(tag, self.is_old_page)
        if style := tag.attributes.get("style"):
            own = self.declarations.read(style)
            kind.own = own if own.normal or own.important else None
        if self.sheet.count:
            for rule in self.sheet.candidates(kind.name, kind.classes, kind.identity):
                if not rule.selector.is_simple:
                    kind.around.append(rule)
                elif (fits := rule.selector.fits(kind, self.steps)) and rule.is_sure:
                    kind.rules.append(rule)
                elif fits is not False:
                    kind.doubts.append(rule)
        kind.is_plain = not (tag.attributes or self.sheet.count or tag.name in _SPECIAL)
        return kind

    def _made(
        self, kind: ElementKind, parent: Look, rules: Sequence[StyleRule], doubts: Sequence[StyleRule]
    ) -> Look:
        if kind.name in NEVER_SHOWN:
            return looks.removed(parent)
        if parent.folded is not None and kind.name == "summary":
            parent = parent.folded
        declared = kind.own or kind.presented or kind.around or rules or doubts
        if not declared and kind.name != "details" and kind.name not in _IN_DOUBT:
            return parent.inside
        if len(self._known) >= MAX_LOOKS:
            return looks.removed(parent)
        look = self._changed(kind, parent, rules)
        for rule in doubts[:MAX_DOUBTS]:
            other = self._changed(kind, parent, sorted((*rules, rule), key=_weight))
            if other.is_seen != look.is_seen or other.doubt != look.doubt:
                look = other if other.is_seen else look
                look.doubt = True
        if len(doubts) > MAX_DOUBTS or kind.name in _IN_DOUBT:
            look.doubt = True
        return self._same.setdefault(look.same(), look)

    def _changed(self, kind: ElementKind, parent: Look, rules: Sequence[StyleRule]) -> Look:
        style = cascade(kind.presented, rules, kind.own)
        custom = {name: value for name, value in style.items() if name.startswith("--")}
        variables: Mapping[str, str] = {**parent.custom, **custom} if custom else parent.custom
        if any("(" in value and "var(" in value.lower() for value in style.values()):
            style = resolved(style, variables, self.is_old_page)
        look = looks.changed(parent, kind.name, style)
        look.custom = variables
        if "animation-name" in style:
            self._end_animation(look, kind, parent, style)
        if kind.name == "details" and "open" not in kind.attributes:
            self._fold(look)
        return look

    def _fold(self, look: Look) -> None:
        summary = Look(look)
        summary.evaluate()
        look.folded = summary
        look.evaluate()

    def _end_animation(self, look: Look, kind: ElementKind, parent: Look, style: Style) -> None:
        """End an animation, whose final state may stay, or not."""
        for name in words(style["animation-name"].replace(",", " "))[:MAX_DOUBTS]:
            if (last := self.sheet.keyframes.get(name)) is not None:
                ended = looks.changed(parent, kind.name, {**style, **last})
                if ended.is_seen != look.is_seen:
                    look.doubt = look.is_seen = True
                    look.removed = look.invisible = False


def _weight(rule: StyleRule) -> tuple[int, tuple[int, int, int], int]:
    return rule.weight


def _weight_of_important(rule: StyleRule) -> tuple[int, tuple[int, int, int], int]:
    return rule.weight_of_important


def cascade(presented: Style, rules: Sequence[StyleRule], own: StyleBlock | None) -> Style:
    """Apply rules by rising weight, then the element's own style, then important declarations so too."""
    style = dict(presented)
    for rule in rules:
        set_all(style, rule.block.normal.items())
    if own is not None:
        set_all(style, own.normal.items())
    important = [rule for rule in rules if rule.block.important]
    for rule in sorted(important, key=_weight_of_important) if len(important) > 1 else important:
        set_all(style, rule.block.important.items())
    if own is not None and own.important:
        set_all(style, own.important.items())
    return style


def resolved(style: Style, variables: Mapping[str, str], is_old_page: bool) -> Style:
    """Insert custom properties; a declaration that becomes invalid counts as unset."""
    result: Style = {}
    for name, value in style.items():
        if name.startswith("--") or "var(" not in value.lower():
            set_all(result, ((name, value),))
            continue
        found = _substituted(value, variables)
        if found is None:
            set_all(result, declared(name, "unset", is_old_page))
        elif found == UNDECIDED:
            set_all(result, ((name, UNDECIDED),))
        else:
            set_all(
                result, declared(name, found.lower(), is_old_page) or declared(name, "unset", is_old_page)
            )
    return result


def _substituted(value: str, variables: Mapping[str, str]) -> str | None:
    for _ in range(MAX_SUBSTITUTIONS):
        found = _VARIABLE.search(value)
        if found is None:
            return UNDECIDED if "var(" in value.lower() else value.strip()
        given = variables.get(found[1])
        if given is None or given.lower() == "initial":
            given = found[2]
        if given is None:
            return None
        value = f"{value[: found.start()]}{given}{value[found.end() :]}"
        if len(value) > MAX_VALUE_CHARS:
            return UNDECIDED
    return UNDECIDED


def browser_style(tag: Open, is_old_page: bool) -> Style:
    """Return browser defaults and presentational attributes."""
    name, attributes = tag.name, tag.attributes
    style: Style = {}
    if name in _SPECIAL:
        _add_special(style, tag, is_old_page)
    if not attributes:
        return style
    if "hidden" in attributes or "popover" in attributes:
        style["display"] = "none"
    if "bgcolor" in attributes and (color := colors.parse_old_color(attributes["bgcolor"])):
        style["background-color"] = _written(color)
    if attributes.get("background"):
        style["background-image"] = "url(x)"
    if name == "font" and (color := colors.parse_old_color(attributes.get("color", ""))):
        style["color"] = _written(color)
    if name == "font" and "size" in attributes:
        style["font-size"] = "13px"
    if name == "body" and (color := colors.parse_old_color(attributes.get("text", ""))):
        style["color"] = _written(color)
    return style


def _add_special(style: Style, tag: Open, is_old_page: bool) -> None:
    name = tag.name
    if name == "a":
        if "href" in tag.attributes:
            style["color"] = "#0000ee"
    elif name in _NOT_DISPLAYED or (name == "dialog" and "open" not in tag.attributes):
        style["display"] = "none"
    elif name == "dialog":
        style.update({"background-color": "white", "color": "black"})
    elif name == "mark":
        style.update({"background-color": "yellow", "color": "black"})
    elif name in _CONTROLS:
        ground = "white" if name == "textarea" else "#efefef"
        style.update({"background-color": ground, "color": "black", "font-size": "13px"})
    elif name == "table" and is_old_page:
        style["font-size"] = "medium"


def _written(color: colors.Color) -> str:
    return f"rgb({color[0]},{color[1]},{color[2]})"

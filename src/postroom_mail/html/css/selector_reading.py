"""Parses CSS selectors into a form that can be matched with elements."""

import re

from postroom_mail.html.css.declarations import unescaped
from postroom_mail.html.css.selectors import Attribute, Compound, Inner, Selector
from postroom_mail.html.css.values import divided
from postroom_mail.html.markup import names

MAX_SELECTOR_CHARS = 1_000
MAX_COMPOUNDS = 12
MAX_INNER = 12
MAX_DEPTH = 4

# Letters, digits, "_", "-" and non-ASCII, by exclusion: compiles in a tenth of the time.
_NO_LETTER = r"\x00-,./;-@\[-^`{-\x7f"
_NAME = rf"(?:[^:{_NO_LETTER}]|\\[0-9a-fA-F]{{1,6}}+\s?+|\\.)++"
_PART = re.compile(
    rf"(?P<type>(?:[\w*]*+\|)?(?:\*|{_NAME}))|\.(?P<class>{_NAME})|#(?P<id>{_NAME})"
    rf"|\[\s*+(?:\w*+\|)?(?P<attribute>[^{_NO_LETTER}]++)\s*+(?:(?P<sign>[~|^$*]?=)\s*+"
    r"(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\]]++)\s*+(?P<case>[iIsS])?\s*+)?\]"
    rf"|(?P<colons>::?)(?P<pseudo>-?{_NAME})(?P<open>\()?"
)
_COMBINATOR = re.compile(r"\s*([>+~]|\|\|)\s*|\s+")
_STEP = re.compile(r"([+-]?\d{0,6})n\s*([+-]\s*\d{1,6})?|([+-]?\d{1,6})")

NEVER = names(
    "hover active focus focus-within focus-visible visited target target-within fullscreen autofill "
    "-webkit-autofill playing modal popover-open picture-in-picture past current user-invalid user-valid "
    "-webkit-full-screen indeterminate"
)
ALWAYS = names("defined read-only scope")
INNER = names("is where matches -webkit-any not")
OTHER_BOXES = names(
    "before after placeholder selection marker backdrop file-selector-button cue target-text spelling-error "
    "grammar-error view-transition scroll-marker"
)
OF_SIBLINGS_BEFORE = names("first-child nth-child first-of-type nth-of-type")


class NotASelector(Exception):
    """A browser would drop the whole rule."""


def read_list(text: str, ignores_case: bool, depth: int = 0) -> list[Selector]:
    """Raises NotASelector if one of them is invalid: then a browser ignores all of them."""
    parts = [text] if "," not in text else divided(text, ",")
    if len(parts) > 1 and any(not part for part in parts):
        raise NotASelector
    return [_read(part.strip(), ignores_case, depth) for part in parts]


def _read(text: str, ignores_case: bool, depth: int) -> Selector:
    if not text or len(text) > MAX_SELECTOR_CHARS or depth > MAX_DEPTH:
        raise NotASelector
    compounds, combinators, weight = [Compound()], [], [0, 0, 0]
    place, is_empty = 0, True
    while place < len(text):
        part = _PART.match(text, place)
        if part is None or (part["type"] is not None and not is_empty):
            joined = _COMBINATOR.match(text, place)
            if joined is None or is_empty or len(compounds) >= MAX_COMPOUNDS or joined[1] == "||":
                raise NotASelector
            compounds.append(Compound())
            combinators.append(joined[1] or " ")
            place, is_empty = joined.end(), True
            continue
        place = _add_part(compounds[-1], part, text, weight, ignores_case, depth)
        is_empty = False
    if is_empty:
        raise NotASelector
    return Selector(compounds[::-1], combinators[::-1], (weight[0], weight[1], weight[2]))


def _add_part(
    compound: Compound, part: re.Match[str], text: str, weight: list[int], ignores_case: bool, depth: int
) -> int:
    if part["type"] is not None:
        name = unescaped(part["type"].rpartition("|")[2]).lower()
        compound.type = "" if name == "*" else name
        weight[2] += name != "*"
    elif part["class"] is not None:
        name = unescaped(part["class"])
        compound.classes.append(name.lower() if ignores_case else name)
        weight[1] += 1
    elif part["id"] is not None:
        name = unescaped(part["id"])
        compound.identity = name.lower() if ignores_case else name
        weight[0] += 1
    elif part["attribute"] is not None:
        compound.attributes.append(_attribute(part))
        weight[1] += 1
    else:
        return _add_pseudo(compound, part, text, weight, ignores_case, depth)
    return part.end()


# The values of these are compared ignoring case (HTML standard, 4.16.2).
_CASELESS = names(
    "align bgcolor border checked clear color colspan dir disabled face hidden lang media nowrap rel "
    "rowspan selected "
    "shape size target text type valign width"
)


def _attribute(part: re.Match[str]) -> Attribute:
    name, value = part["attribute"].lower(), part["value"] or ""
    if value[:1] in ('"', "'"):
        value = value[1:-1]
    is_caseless = (part["case"] or "").lower() == "i" or (name in _CASELESS and not part["case"])
    return Attribute(name, part["sign"] or "", unescaped(value), is_caseless)


def _add_pseudo(
    compound: Compound, part: re.Match[str], text: str, weight: list[int], ignores_case: bool, depth: int
) -> int:
    name, end, written = unescaped(part["pseudo"]).lower(), part.end(), ""
    if part["open"]:
        end = _closing(text, end)
        written = text[part.end() : end - 1].strip()
    if part["colons"] == "::" or name in ("before", "after", "first-line", "first-letter"):
        _add_box(compound, name)
        weight[2] += 1
        return end
    if name in INNER:
        _add_inner(compound, name, written, weight, ignores_case, depth)
        return end
    weight[1] += 1
    if name in NEVER:
        compound.is_never = True
    elif name in ("root", "link", "any-link", "-webkit-any-link", "checked", "disabled", "open"):
        compound.states.append("link" if name.endswith("link") else name)
    elif name in OF_SIBLINGS_BEFORE and " of " not in written:
        compound.counts.append((name, *_step(written if name.startswith("nth") else "1")))
    elif name.startswith(("-moz-", "-ms-", "-o-")):
        raise NotASelector
    elif name not in ALWAYS:
        compound.is_undecided = True
    return end


def _add_box(compound: Compound, name: str) -> None:
    """Add a pseudo-element. A first line or letter is part of the text; boxes before and after are not."""
    if name.startswith(("-moz-", "-ms-", "-o-")):
        raise NotASelector
    if name in OTHER_BOXES or name.startswith("-webkit-"):
        compound.is_never = True
    else:
        compound.is_undecided = True


def _add_inner(
    compound: Compound, name: str, written: str, weight: list[int], ignores_case: bool, depth: int
) -> None:
    try:
        selectors = read_list(written, ignores_case, depth + 1)
    except NotASelector:
        if name == "not":
            raise
        compound.is_undecided = True
        return
    if len(selectors) > MAX_INNER:
        compound.is_undecided = True
        return
    compound.inner.append(Inner(name == "not", selectors))
    if name != "where":
        heaviest = max(selector.specificity for selector in selectors)
        for place in range(3):
            weight[place] += heaviest[place]


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        if text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
            if not depth:
                return place + 1
    raise NotASelector


def _step(written: str) -> tuple[int, int]:
    """Return the step of `2n+1`, `odd`, `3`."""
    written = {"odd": "2n+1", "even": "2n"}.get(written.lower(), written.lower())
    found = _STEP.fullmatch(written)
    if found is None:
        raise NotASelector
    if found[3]:
        return 0, int(found[3])
    step = int(found[1]) if found[1] not in ("", "+", "-") else int(f"{found[1]}1")
    return step, int("".join(found[2].split())) if found[2] else 0

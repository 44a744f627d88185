"""Keeps the colours of an email readable when parts of its design are left out.

A background with a picture keeps its colour; light text keeps its colour only on a background.
"""

import re
from collections.abc import Mapping

LIGHT = 0.6  # of 1: below it a text is readable on white
NAMED_LIGHT = {
    "white", "snow", "ivory", "azure", "beige", "linen", "seashell", "mintcream", "honeydew", "aliceblue",
    "ghostwhite", "whitesmoke", "floralwhite", "lavender", "lightgray", "lightgrey", "gainsboro", "silver",
    "lightyellow", "yellow", "cornsilk", "oldlace", "lightcyan", "pink", "lightpink", "wheat", "khaki",
}  # fmt: skip
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|rgba?\([\d.,%\s/]{1,40}\)|\b[a-z]{3,24}\b(?!\()", re.IGNORECASE)
_ADDRESS = re.compile(r"url\([^()]{0,2000}+\)|(?<![a-z-])[a-z-]{0,40}gradient\([^;]{0,400}", re.IGNORECASE)
_NOT_A_COLOUR = {
    "none", "transparent", "inherit", "initial", "unset", "repeat", "no", "center", "top", "bottom", "left",
    "right", "cover", "contain", "fixed", "scroll", "important", "url",
}  # fmt: skip


def readable(attributes: Mapping[str, str], is_on_ground: bool) -> Mapping[str, str]:
    """Return the attributes with plain backgrounds and without unreadable text colours."""
    if "style" not in attributes and "color" not in attributes:
        return attributes
    changed = dict(attributes)
    if "style" in changed:
        changed["style"] = "; ".join(
            f"{name}: {value}" for name, value in declarations(changed["style"]) if value
        )
    if is_on_ground or has_background(changed):
        return changed
    if is_light(changed.get("color", "")):
        del changed["color"]
    kept = [
        (name, value)
        for name, value in declarations(changed.get("style", ""))
        if not is_unreadable(name, value)
    ]
    if "style" in changed:
        changed["style"] = "; ".join(f"{name}: {value}" for name, value in kept)
    return changed


def is_unreadable(name: str, value: str) -> bool:
    return name == "color" and is_light(value)


def declarations(style: str) -> list[tuple[str, str]]:
    """Return the declarations, for a background only the colour."""
    found = []
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        plain = name.strip().lower()
        if not value.strip():
            continue
        if plain in ("background", "background-color"):
            found.append(("background-color", colour_in(value)))
        else:
            found.append((plain, value.strip()))
    return found


def colour_in(value: str) -> str:
    for each in _COLOUR.findall(_ADDRESS.sub(" ", value)):
        if each.lower() not in _NOT_A_COLOUR:
            return str(each)
    return ""


def has_background(attributes: Mapping[str, str]) -> bool:
    if attributes.get("bgcolor"):
        return True
    return any(
        name == "background-color" and value for name, value in declarations(attributes.get("style", ""))
    )


def is_light(colour: str) -> bool:
    plain = colour.replace("!important", "").strip().lower()
    if plain in NAMED_LIGHT:
        return True
    parts = components(plain)
    return parts is not None and 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > LIGHT * 255


def components(colour: str) -> tuple[float, ...] | None:
    if re.fullmatch(r"#[0-9a-f]{3,8}", colour):
        digits = colour[1:]
        wide = digits if len(digits) >= 6 else "".join(digit * 2 for digit in digits)
        return tuple(int(wide[at : at + 2], 16) for at in (0, 2, 4))
    if colour.startswith(("rgb(", "rgba(")):
        numbers = re.findall(r"\d{1,3}(?:\.\d{1,4})?", colour)[:3]
        return tuple(map(float, numbers)) if len(numbers) == 3 else None
    return None

"""Reads a command line: verb, argument, path and parameters; what cannot be read raises Refusal."""

import re

from msgspec import Struct

from postroom.smtp.dialogue import replies
from postroom.smtp.dialogue.replies import Refusal

# Blanks behind the colon are forbidden (RFC 5321 section 3.3), and common.
_PATH = re.compile(r'(FROM|TO): *+<((?:"(?:[^"\\]|\\.)*+"|[^<>"\s])*+)>', re.IGNORECASE)
_MAX_NAME_CHARACTERS = 255  # RFC 5321 section 4.5.3.1.2: of a domain
_MAX_SIZE_DIGITS = 20  # RFC 1870 section 3


class Argument(Struct, frozen=True):
    """The argument of MAIL or RCPT; the keys of the parameters are in upper case."""

    path: str
    parameters: dict[str, str]


def split_line(line: bytearray) -> tuple[str, str]:
    """Return the verb in upper case, and its argument."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(replies.BAD_LINE) from None
    require(text.isprintable(), replies.BAD_LINE)
    verb, _, argument = text.partition(" ")
    return verb.upper(), argument.strip(" ")


def require(is_good: bool, refusal: bytes = replies.BAD_ARGUMENT) -> None:
    if not is_good:
        raise Refusal(refusal)


def require_host_name(name: str) -> None:
    """Require a single word: RFC 5321, 4.1.4 forbids refusing mail because the name is wrong."""
    require(0 < len(name) <= _MAX_NAME_CHARACTERS and name.isascii() and " " not in name)


def read_path(text: str, keyword: str) -> Argument:
    """Reads `FROM:<path> KEY=VALUE KEY`."""
    match = _PATH.match(text)
    if match is None or match[1].upper() != keyword:
        raise Refusal(replies.BAD_ARGUMENT)
    rest = text[match.end() :]
    require(rest == "" or rest.startswith(" "))
    return Argument(match[2], _read_parameters(rest.split()))


def _read_parameters(words: list[str]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        require(key.upper() not in parameters)
        parameters[key.upper()] = value
    return parameters


def require_mail_parameters(parameters: dict[str, str], max_message_bytes: int) -> None:
    """Refuses parameters that cannot be honoured (RFC 1870, RFC 6152, RFC 6531)."""
    for key, value in parameters.items():
        if key == "SIZE":
            _require_size(value, max_message_bytes)
        elif key == "BODY":
            require(value.upper() in ("7BIT", "8BITMIME"))
        elif key == "SMTPUTF8":
            require(value == "")
        else:
            raise Refusal(replies.UNKNOWN_PARAMETER)


def _require_size(value: str, limit: int) -> None:
    require(value.isascii() and value.isdigit() and len(value) <= _MAX_SIZE_DIGITS)
    require(int(value) <= limit, replies.TOO_LARGE)

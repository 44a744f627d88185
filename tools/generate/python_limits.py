"""Writes the limits that the client keeps by itself, as numbers: it imports nothing of the server."""

from postroom import limits
from postroom_mail.search import query
from tools.generate import python_source
from tools.generate.description import Description

NAMES = (
    "SUBJECT_CHARACTERS",
    "ATTACHMENTS_BYTES",
    "ATTACHMENTS_TOGETHER",
    "CALENDAR_COMMENT_CHARACTERS",
    "DECISION_WAIT_SECONDS",
    "LESSONS_BYTES",
    "LESSONS_TOGETHER",
    "LESSON_BYTES",
    "LONGEST_PAGE",
    "MESSAGE_WAIT_SECONDS",
)
DOCSTRING = "The server's limits that the client keeps by itself."


def limits_of_client(_: Description) -> str:
    kept = {name: getattr(limits, name) for name in NAMES} | {"SEARCH_CHARACTERS": query.MAX_CHARS}
    return python_source.module(DOCSTRING, [], [f"{name} = {value!r}" for name, value in kept.items()])

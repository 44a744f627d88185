"""The documents are written in plain English: short sentences, the words of the trade, short pages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom.web.interface import openapi
from postroom.web.interface.schemas import field_descriptions, is_described
from postroom.web.routes import ROUTES
from tests.command_tree import command_tree
from tests.test_docs import PAGES, ROOT, named
from tools.generate.frameworks import FRAMEWORKS

GENERATED = {
    f"docs/{name}.md"
    for name in (
        "reference",
        "decisions",
        "events",
        "accuracy",
        "limits",
        "log-lines",
        "mcp-tools",
        "metrics",
        "settings",
        "signal-rules",
    )
} | {f"docs/{name}.md" for name in FRAMEWORKS}
OTHERS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clients/typescript/README.md",
    "src/postroom_client/README.md",
    "src/postroom_mail/README.md",
    "skills/postroom/SKILL.md",
    "src/postroom/web/llms.txt",
]
WRITTEN = [path for path in PAGES if named(path) not in GENERATED]
LONGEST_SENTENCE, LONGEST_PAGE, WORDS_OF_ALL_PAGES = 30, 1_500, 45_000
# "mail" is right in compounds: a mail server.
COMPOUNDS = "app|boxes|client|exchanger|flow|form|host|list|provider|relay|server|service|system"
MAIL_AS_A_COUNTABLE = (
    r"(?:a|an|each|every|one|this|that|another) mail(?= [a-z]|[.,;:)]|$)" rf"(?! (?:{COMPOUNDS})s?\b)"
)
WRONG_WORDS = re.compile(
    rf"\b(?:{MAIL_AS_A_COUNTABLE}|mails|mail programs?|whoever|anyone who|as things stand|by itself"
    r"|of (?:its|their|your|our|one's) own|beside|out of reach|keys? reach(?:es)?"
    r"|(?:a|the|each|every|this|own) letters?)\b",
    re.IGNORECASE,
)
# Alone, it says neither which email nor whether it is one.
MAIL_ALONE = re.compile(rf"\b[Mm]ail\b(?! (?:{COMPOUNDS})s?\b)(?!\.)")
# Not what Postroom says: letters of the alphabet, a name that nodes share, and samples of what others write.
OTHERS_WORDS = {
    "postroom/mailbox/inboxes.py": ["a letter"],
    "postroom/upkeep/shared_blob_store.py": ["mails"],
    "postroom/outward/simulator/personas.py": ["every mail"] * 2,
    "postroom_mail/screening/wording_rules.py": ["this mail"] * 4,
}


def prose(text: str) -> str:
    """The text without blocks, code, link targets, front matter and HTML."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|<[^>]+>", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> Iterator[str]:
    """Each sentence of paragraphs, list items and table cells; headings are none."""
    plain = re.sub(r"^#+ .*$", "\n\n", prose(text), flags=re.MULTILINE)
    plain = re.sub(r"^\|(.*)\|$", lambda row: row[1].replace("|", "\n\n") + "\n\n", plain, flags=re.MULTILINE)
    plain = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", plain, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", plain):
        yield from re.split(r"(?<=[.?!:])[)*\"]* +(?=\S)", " ".join(paragraph.split()))


def long_sentences(text: str) -> list[str]:
    return [each for each in sentences(text) if len(re.findall(r"\w[\w'.-]*", each)) > LONGEST_SENTENCE]


def wrong_words(text: str) -> list[str]:
    return [found[0] for found in WRONG_WORDS.finditer(" ".join(prose(text).split()))]


def begins_with_a_sentence(text: str) -> bool:
    """Below the title stands a sentence, before any list, table, block or heading."""
    return bool(re.match(r"(?:<!--.*?-->\s*)?# [^\n]+\n\n(?![#|`>-])[^\n]*\w", text)) and not long_sentences(
        text.partition("\n\n")[2].partition("\n\n")[0]
    )


@pytest.mark.parametrize("path", [*WRITTEN, *(ROOT / name for name in OTHERS)], ids=named)
def test_a_page_is_written_in_short_sentences_and_words_of_the_trade(path: Path) -> None:
    text = path.read_text()
    assert {"long": long_sentences(text), "wrong": wrong_words(text)} == {"long": [], "wrong": []}


def test_a_page_begins_with_a_sentence_and_is_short() -> None:
    texts = {named(path): path.read_text() for path in WRITTEN}
    assert [name for name, text in texts.items() if not begins_with_a_sentence(text)] == []
    assert {name: words for name, text in texts.items() if (words := len(text.split())) > LONGEST_PAGE} == {}
    assert sum(len(text.split()) for text in texts.values()) <= WORDS_OF_ALL_PAGES


def strings_of(text: str) -> Iterator[str]:
    """Everything that a module can say: messages, log events, labels. Docstrings are none of it."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value if " " in node.value else ""


def test_messages_log_events_and_labels_are_in_words_of_the_trade() -> None:
    source = ROOT / "src"
    said = {
        str(path.relative_to(source)): [word for each in strings_of(text) for word in wrong_words(each)]
        for path in source.rglob("*.py")
        if WRONG_WORDS.search(text := path.read_text())
    }
    for path in source.rglob("*.html"):
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "CODE", path.read_text(), flags=re.DOTALL)
        said[str(path.relative_to(source))] = wrong_words(text)
    assert {name: words for name, words in said.items() if words} == OTHERS_WORDS


def descriptions(schema: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in ("summary", "description") and isinstance(value, str):
                yield path, value
            yield from descriptions(value, f"{path}/{name}")
    elif isinstance(schema, list):
        for value in schema:
            yield from descriptions(
                value, f"{path}/{value.get('name', '')}" if isinstance(value, dict) else path
            )


def helps(command: Any, path: str = "postroom") -> Iterator[tuple[str, str]]:
    yield path, command.help or ""
    for each in command.params:
        yield f"{path} {each.name}", getattr(each, "help", None) or ""
    for name, child in getattr(command, "commands", {}).items():
        yield from helps(child, f"{path} {name}")


def test_the_description_of_the_api_and_every_help_are_in_plain_english() -> None:
    told = [*descriptions(openapi.document(ROUTES, "")), *helps(command_tree())]
    assert len(told) > 5_000
    assert [path for path, text in told if not re.search(r"\w", text)] == []
    assert [(path, text) for path, text in told if wrong_words(text) or long_sentences(text)] == []
    assert [(path, text) for path, text in told if MAIL_ALONE.search(prose(text))] == []


def test_every_field_and_parameter_of_the_api_says_what_it_means() -> None:
    document = openapi.document(ROUTES, "")
    schemas = document["components"]["schemas"]
    fields = [
        (f"{shape}.{name}", field)
        for shape, schema in schemas.items()
        for name, field in schema.get("properties", {}).items()
    ]
    assert len(fields) > 1_000
    assert [name for name, field in fields if not is_described(field)] == []
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    parameters = [each for operation in operations for each in operation.get("parameters", [])]
    assert [each["name"] for each in parameters if not is_described({**each["schema"], **each})] == []
    used = {field.get("description") for _, field in fields}
    assert [name for name, said in field_descriptions().items() if said not in used] == []


def test_the_measure_finds_what_it_looks_for() -> None:
    long = "One " + "and one " * 20 + "is long."
    assert long_sentences(f"# T\n\n{long} Short.\n\n| {long} | x |\n") == [long, long]
    assert long_sentences("- " + "Some short words end here. " * 9) == []
    assert wrong_words("Whoever sends a mail to a mail server, or mails,\nby itself") == [
        "Whoever",
        "a mail",
        "mails",
        "by itself",
    ]
    assert wrong_words("Email, mailboxes, a mail client and `a mail`") == []
    assert begins_with_a_sentence("# T\n\nYou can.\n")
    assert not begins_with_a_sentence("# T\n\n## U\n\nYou can.\n")

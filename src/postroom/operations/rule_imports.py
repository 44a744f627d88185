"""Imports rules of other mail clients: Gmail's export of filters, and Thunderbird's msgFilterRules.dat."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError  # only the error of the parser below

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from msgspec import Meta, Struct

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden
from postroom.limits import LABEL_CHARACTERS, NAME_CHARACTERS
from postroom.mailbox.rules import RuleAction
from postroom.operations import rules
from postroom.operations.rules import MailRule, NewMailRule
from postroom.storage.database import Tx

MOST = 500  # rules of a file that are looked at
PROPERTY = "{http://schemas.google.com/apps/2006}property"
ENTRY = "{http://www.w3.org/2005/Atom}entry"
SIZES = {"s_sb": "b", "s_skb": "kb", "s_smb": "mb"}
_LINE = re.compile(r'([A-Za-z]{1,40})="(.*)"')
_TERM = re.compile(r"(AND|OR) \(([^,()]{1,80}),([^,()]{1,40}),([^()]{0,200})\)")
FIELDS = {"from": "from:", "to": "to:", "to or cc": "to:", "cc": "to:", "subject": "subject:", "body": ""}
FIELDS_OF_ANY = {"all addresses": ("from:", "to:"), "from, to, cc or bcc": ("from:", "to:")}
DONE_BY = {"Mark read": "markRead", "Mark flagged": "flag", "Delete": "trash", "Ignore thread": "archive"}


class RuleFile(Struct, frozen=True):
    format: Literal["gmail", "thunderbird"]
    content: Annotated[str, Meta(min_length=1, max_length=limits.REQUEST_BYTES, description="The file.")]


class SkippedRule(Struct, frozen=True):
    """A rule of the file that could not be taken over."""

    name: str
    reason: str


class ImportedRules(Struct, frozen=True):
    """The new rules are switched off: look at what each matches, then switch it on."""

    data: list[MailRule]
    skipped: list[SkippedRule]


class ForeignRule(Struct, frozen=True):
    name: str
    query: str
    actions: tuple[RuleAction, ...]
    stop: bool = False
    reason: str = ""  # why it is left out


def import_rules(tx: Tx, caller: Caller, within: Scope, body: RuleFile, now: int) -> ImportedRules:
    """Import rules of another mail client; they are switched off until you switch them on"""
    found = read_gmail(body.content) if body.format == "gmail" else read_thunderbird(body.content)
    made: list[MailRule] = []
    skipped: list[SkippedRule] = []
    for rule in found[:MOST]:
        reason = rule.reason or (
            "" if rule.query and rule.actions else "Nothing here matches or does the same."
        )
        try:
            if not reason:
                new = NewMailRule(rule.name, rule.query, list(rule.actions), rule.stop, enabled=False)
                made.append(rules.create_rule(tx, caller, within, new, now))
        except (BadRequest, Forbidden) as error:
            reason = error.message
        if reason:
            skipped.append(SkippedRule(rule.name, reason))
    return ImportedRules(made, skipped)


def read_gmail(content: str) -> list[ForeignRule]:
    """Return the filters of Gmail's export: entries of an Atom feed with properties."""
    try:
        feed = fromstring(content.encode())
    except (ParseError, DefusedXmlException, ValueError, UnicodeError):
        raise BadRequest("content is not the XML that Gmail exports.", field="content") from None
    entries = [
        {each.get("name", ""): each.get("value", "") for each in entry.iter(PROPERTY)}
        for entry in feed.iter(ENTRY)
    ]
    return [_of_gmail(number, each) for number, each in enumerate(entries[:MOST], 1)]


def _of_gmail(number: int, given: dict[str, str]) -> ForeignRule:
    terms = [_any(f"{name}:", given[name]) for name in ("from", "to", "subject") if given.get(name)]
    terms += [given["hasTheWord"]] if given.get("hasTheWord") else []
    terms += [f"-{_quoted(given['doesNotHaveTheWord'])}"] if given.get("doesNotHaveTheWord") else []
    terms += ["has:attachment"] if given.get("hasAttachment") == "true" else []
    if given.get("size", "").isdecimal():
        sign = "<" if given.get("sizeOperator") == "s_ss" else ">"
        terms.append(f"size:{sign}{given['size']}{SIZES.get(given.get('sizeUnit', ''), 'mb')}")
    done: list[RuleAction] = []
    if label := given.get("label"):
        done.append(RuleAction("label", label=label[-LABEL_CHARACTERS:]))
    for name, kind in (("shouldMarkAsRead", "markRead"), ("shouldStar", "flag")):
        done += [RuleAction(kind)] if given.get(name) == "true" else []  # type: ignore[arg-type]
    done += [RuleAction("archive")] if given.get("shouldArchive") == "true" else []
    done += [RuleAction("trash")] if given.get("shouldTrash") == "true" else []
    done += [RuleAction("forward", to=given["forwardTo"])] if given.get("forwardTo") else []
    return ForeignRule(f"Gmail {number}", " ".join(terms), tuple(done))


def _any(field: str, value: str) -> str:
    """Return a search for `a OR b`, as Gmail writes several addresses."""
    return " OR ".join(
        f"{field}{_quoted(each)}" for each in re.split(r" OR |\|", value.strip("(){} ")) if each
    )


def _quoted(value: str) -> str:
    return '"' + value.replace('"', " ").strip("() ") + '"'


def read_thunderbird(content: str) -> list[ForeignRule]:
    """Return the rules of Thunderbird's file: lines of names and values; each `name` begins a rule."""
    lines = [match for line in content.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    if not lines:
        raise BadRequest("content is not a msgFilterRules.dat of Thunderbird.", field="content")
    groups: list[list[tuple[str, str]]] = []
    for match in lines:
        if match[1] == "name":
            groups.append([])
        if groups:
            groups[-1].append((match[1], match[2]))
    return [_of_thunderbird(group) for group in groups[:MOST]]


def _of_thunderbird(group: Sequence[tuple[str, str]]) -> ForeignRule:
    name = group[0][1][:NAME_CHARACTERS] or "Thunderbird"
    condition = next((value for key, value in group if key == "condition"), "")
    done, stop = list(_actions(group)), any(value == "Stop execution" for _, value in group)
    found = _TERM.findall(condition)
    if not found or len({joined for joined, *_ in found}) > 1 or len(found) != condition.count(" ("):
        return ForeignRule(name, "", (), reason="Its condition cannot be written as a search.")
    terms = [_term(field.strip(), how, value) for _, field, how, value in found]
    if None in terms:
        return ForeignRule(name, "", (), reason="Its condition asks for what a search cannot.")
    query = (" OR " if found[0][0] == "OR" else " ").join(each for each in terms if each)
    return ForeignRule(name, query, tuple(done), stop)


def _term(field: str, how: str, value: str) -> str | None:
    is_negated = how in ("doesn't contain", "isn't")
    if how not in ("contains", "is", "begins with", "ends with", "doesn't contain", "isn't"):
        return None
    sign = "-" if is_negated else ""
    if field in FIELDS_OF_ANY and not is_negated:
        return " OR ".join(f"{each}{_quoted(value)}" for each in FIELDS_OF_ANY[field])
    if field.startswith(('"', '\\"')):
        header = field.strip('\\"')
        return f'{sign}header:"{header}={value}"'
    return None if field not in FIELDS else f"{sign}{FIELDS[field]}{_quoted(value)}"


def _actions(group: Sequence[tuple[str, str]]) -> Iterator[RuleAction]:
    """Return the actions of a rule. A folder becomes a label; moving into it also archives the thread."""
    for number, (key, value) in enumerate(group):
        if key != "action":
            continue
        given = (
            group[number + 1][1]
            if group[number + 1 : number + 2] and group[number + 1][0] == "actionValue"
            else ""
        )
        if value in ("Move to folder", "Copy to folder"):
            yield RuleAction("label", label=unquote(given.rpartition("/")[2])[:LABEL_CHARACTERS])
            if value == "Move to folder":
                yield RuleAction("archive")
        elif value == "AddTag":
            yield RuleAction("label", label=given.removeprefix("$")[:LABEL_CHARACTERS])
        elif value == "Forward":
            yield RuleAction("forward", to=given)
        elif value in DONE_BY:
            yield RuleAction(DONE_BY[value])  # type: ignore[arg-type]

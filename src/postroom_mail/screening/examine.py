"""Examines one email: every rule that it meets, each once, and the resulting verdict."""

import re
from collections.abc import Iterator

from msgspec import Struct

from postroom_mail.html.page import HtmlPage, read_page
from postroom_mail.languages.folding import bounded, mixed_word
from postroom_mail.mime.address import Address
from postroom_mail.screening import characters, markup, payloads, risky_files, senders, wording
from postroom_mail.screening.passage import MAX_CHARS, SIGNS_OF_MARKERS, Passage
from postroom_mail.screening.rules import BY_NAME, FRAUD, RaisedSignal, Verdict, verdict_of
from postroom_mail.screening.wording import ORDER_WINDOW, is_ordered

MAX_EXCERPT_CHARS = 200
MAX_ATTACHMENTS = 20
MAX_ATTACHMENT_CHARS = 3_000
MAX_BESIDE_CHARS = 4_000
PAGES = (".html", ".htm", ".shtml", ".xhtml", ".svg", ".mht", ".mhtml")
QUOTE_WINDOW = 80
TAGGED_WINDOW = 160

ROLE_MARKERS = (
    "<user>", "</user>", "<assistant>", "</assistant>", "\n[admin]", "[/admin]", "## system",
    "system message:",
    "<|im_start|>", "<|im_end|>", "<|system|>", "<|assistant|>", "<|user|>", "<|endoftext|>", "<|eot_id|>",
    "<|start_header_id|>", "[inst]", "[/inst]", "<<sys>>", "<start_of_turn>", "### system",
    "### instruction", "<system>", "</system>", "<system_prompt>", "[system]", "[system message]",
    "[system prompt]", "begin system prompt", "begin system message", "end of system prompt",
    "system override", "<tool_call>", "<function_calls>", "developer mode enabled", "you are now dan",
    "you are now in developer mode", "\nassistant: ", "\nsystem: ", "###(system", "### (system",
    "[system note", "<admin>", "<admin ", "</admin", "<instructions>", "<information>", "<important>",
    '"role": "system"', '"role":"system"', "</email>",
    "<tool_response>", "<tool_result", "[/system", "<|",
)  # fmt: skip
SUBJECT_OF_ATTACKS = (
    "prompt injection", "prompt-injection", "prompt injections", "jailbreak", "chat template", "tokenizer",
    "tokeniser", "inyeccion de prompt", "injecao de prompt", "injection de prompt", "iniezione di prompt",
    "prompt-injektion", "promptinjectie", "wstrzykiwani", "инъекци", "提示词注入", "提示注入",
    "プロンプトインジェクション", "프롬프트 인젝션", "prompt enjeksiyon",
)  # fmt: skip
SIGNS_OF_CARRYING = ("](", "={", "=<", "=[", "=$")
_CARRYING = re.compile(
    r"!\[[^\]\n]{0,80}\]\(https?://[^\s)]{1,300}[?&][\w-]{1,30}=(?:[{\[<$]|%7B|[A-Z][A-Z_]{5,40})[^)\n]{0,120}"
    r"|https?://[^\s<>]{1,300}[?&][\w-]{1,30}=(?:\{\{|\$\{|\{\w{1,20}\}|<(?:the|your|all|insert)|\[(?:insert|the|your|all))[^\n]{0,80}",
    re.IGNORECASE,
)
# Tags that no program writes into an email, except to imitate a chat format.
_PSEUDO_TAG = re.compile(
    r"<{1,3}/?(?:[a-z]{1,12}[_-]){0,2}(?:system|instructions?|prompt|assistant|override|directive|tool_(?:call|output|result))"
    r"(?:[_-][a-z]{1,12}){0,2}[ >]"
    r"|<!-- ?(?:agent|assistant|ai|llm|bot|model|system|instructions?)[ :]"
    r"|\{\{[#/]?(?:system|assistant|instruction)|```(?:system|assistant|prompt)"
    r"|\[\[(?:system|assistant|instruction|admin)|\[(?:assistant|system|agent)\]:"
    r"|[=#*-]{3,8} ?(?:(?:begin|end|end of|start|start of|new|updated) )?"
    r"(?:system (?:prompt|message|instruction)|trusted instruction|untrusted content)",
    re.IGNORECASE,
)
_QUOTES = frozenset('"`“”„«»「」『』‹›‘')  # noqa: RUF001


class Subject(Struct, frozen=True, kw_only=True):
    """The facts about an email. `body_text` is the text shown to its reader, with invisible characters."""

    from_addr: str = ""
    subject: str = ""
    body_text: str = ""
    body_html: str = ""
    page: HtmlPage | None = None  # the HTML, if it was read already
    attachment_names: tuple[str, ...] = ()
    attachment_texts: tuple[str, ...] = ()
    files: tuple[risky_files.File, ...] = ()  # with their content
    dmarc: str = "none"
    known: tuple[str, ...] = ()
    colleagues: tuple[str, ...] = ()
    reply_to: tuple[Address, ...] = ()

    @property
    def sender(self) -> senders.Sender:
        return senders.Sender(self.from_addr, self.dmarc, self.reply_to)

    @property
    def said(self) -> str:
        return f"{self.subject}\n\n{self.body_text}"


class Findings(Struct, frozen=True):
    verdict: Verdict
    signals: tuple[RaisedSignal, ...]


def examine(subject: Subject, said: Passage | None = None) -> Findings:
    """`said` is subject and text as one passage, if it was made already."""
    found: dict[str, str] = {}
    for name, excerpt in _all(subject, said or Passage(subject.said)):
        found.setdefault(name, excerpt)
    return _concluded(found, subject.body_html)


def examine_sender(before: Findings, subject: Subject) -> Findings:
    """Adds what the sender shows now that the correspondents are known."""
    found = {signal.name: signal.excerpt for signal in before.signals}
    for name, excerpt in senders.findings(subject.sender, subject.known, subject.colleagues):
        found.setdefault(name, excerpt)
    return before if len(found) == len(before.signals) else _concluded(found, subject.body_html)


def _concluded(found: dict[str, str], body_html: str) -> Findings:
    if found and body_html:
        for excerpt in markup.misleading_links(body_html):
            found.setdefault("misleading_link", excerpt)
    signals = tuple(_signal(name, found[name]) for name in BY_NAME if name in found)
    return Findings(verdict_of(signals), signals)


def _signal(name: str, excerpt: str) -> RaisedSignal:
    shown = "".join(letter if letter.isprintable() else " " for letter in excerpt[: 2 * MAX_EXCERPT_CHARS])
    rule = BY_NAME[name]
    return RaisedSignal(name, rule.weight, " ".join(shown.split())[:MAX_EXCERPT_CHARS], rule.reason)


def _all(subject: Subject, text: Passage) -> Iterator[tuple[str, str]]:
    shown = set()
    for name, excerpt in _said(text):
        shown.add(name)
        yield name, excerpt
    if not text.is_ascii:
        if word := mixed_word(text.plain):
            yield "lookalike_letters", word
        yield from _of_invisible(bounded(subject.said, MAX_CHARS))
    yield from _encoded(text)
    if subject.body_html:
        yield from _of_html(subject.page or read_page(subject.body_html), subject.body_text, shown)
        if field := markup.password_form(subject.body_html):
            yield "credential_form", field
    if subject.attachment_names or subject.attachment_texts:
        yield from _of_attachments(subject)
    if subject.files:
        yield from _of_files(subject, text)
    yield from senders.findings(subject.sender, subject.known, subject.colleagues)


def _of_files(subject: Subject, text: Passage) -> Iterator[tuple[str, str]]:
    for file in subject.files[:MAX_ATTACHMENTS]:
        if file.filename.lower().endswith(PAGES) and (field := markup.password_form(_page_of(file))):
            yield "credential_form", f"{file.filename}: {field}"
    for name, excerpt in risky_files.findings(subject.files):
        yield name, excerpt
        if name == "locked_archive" and risky_files.gives_password(text.folded):
            yield "password_beside", excerpt


def _page_of(file: risky_files.File) -> str:
    return file.content[: markup.MAX_FORM_CHARS].decode("latin-1").replace("\0", "")


def _said(text: Passage) -> Iterator[tuple[str, str]]:
    for hits in wording.hits_by_rule(text):
        for hit in hits:
            is_quoted = _is_quoted(text.shown, hit.anchor) and _speaks_of_attacks(text.folded)
            yield "quoted_instructions" if is_quoted else hit.rule, text.shown[hit.start : hit.end]
            if hit.is_order and not is_quoted:
                yield "commands_machine", text.shown[hit.start : hit.end + ORDER_WINDOW]
            if not is_quoted:
                break
    if carried := links_that_carry(text):
        yield "leaks_by_link", carried
    if not text.has_any(SIGNS_OF_MARKERS):
        return
    is_spoken_of = _speaks_of_attacks(text.folded)
    for place in _marker_places(text.folded):
        yield "quoted_instructions" if is_spoken_of else "role_markers", _around(text.shown, place)
        if not is_spoken_of and is_ordered(text.folded, place, place + TAGGED_WINDOW):
            yield "commands_machine", _around(text.shown, place)


def _marker_places(folded: str) -> Iterator[int]:
    if found := _PSEUDO_TAG.search(folded):
        yield found.start()
    yield from (place for marker in ROLE_MARKERS if (place := folded.find(marker)) >= 0)


def _around(shown: str, place: int) -> str:
    return shown[max(0, place - 20) : place + 80]


def links_that_carry(text: Passage) -> str:
    """A Markdown picture or link whose query is to be filled with what the reader knows."""
    if not text.has_written(SIGNS_OF_CARRYING):
        return ""
    found = _CARRYING.search(text.shown)
    return found[0] if found else ""


def _speaks_of_attacks(folded: str) -> bool:
    return any(words in folded for words in SUBJECT_OF_ATTACKS)


def _is_quoted(shown: str, place: int) -> bool:
    before, behind = shown[max(0, place - QUOTE_WINDOW) : place], shown[place : place + 2 * QUOTE_WINDOW]
    return not _QUOTES.isdisjoint(before) and not _QUOTES.isdisjoint(behind)


def _of_invisible(text: str) -> Iterator[tuple[str, str]]:
    if not characters.has_invisible(text):
        return
    for spelled in characters.smuggled(text):
        yield "smuggled_characters", spelled or "(nothing readable)"
        yield from _instructions("hidden_instructions", spelled)
    if excerpt := characters.split_words(text):
        yield "zero_width_in_words", excerpt
    if excerpt := characters.turned(text):
        yield "reversed_direction", excerpt


def _instructions(rule: str, text: str) -> Iterator[tuple[str, str]]:
    """The rule and each of the wording rules that the text matches."""
    for name, excerpt in _said(Passage(text)):
        if name not in FRAUD:
            yield rule, excerpt
        yield name, excerpt


def _encoded(text: Passage) -> Iterator[tuple[str, str]]:
    if decoded := payloads.decoded(text):
        yield from _instructions("encoded_instructions", decoded)


def _of_html(page: HtmlPage, body_text: str, shown: set[str]) -> Iterator[tuple[str, str]]:
    """Return what the HTML says and the text does not: the text is what the HTML shows, or another body."""
    if words := markup.words_beside(page, body_text):
        for name, excerpt in _said(Passage(words, MAX_BESIDE_CHARS)):
            if name not in shown and name != "quoted_instructions":
                if name not in FRAUD:
                    yield "hidden_instructions", excerpt
                yield name, excerpt
        yield from _of_invisible(bounded(words, MAX_BESIDE_CHARS))
    if excerpt := markup.hidden_text(page):
        yield "hidden_text", excerpt


def _of_attachments(subject: Subject) -> Iterator[tuple[str, str]]:
    names = "\n\n".join(subject.attachment_names[:MAX_ATTACHMENTS])
    texts = "\n\n".join(text[:MAX_ATTACHMENT_CHARS] for text in subject.attachment_texts[:MAX_ATTACHMENTS])
    if names or texts:
        text = Passage(f"{names}\n\n{texts}", MAX_BESIDE_CHARS)
        yield from _said(text)
        yield from _encoded(text)

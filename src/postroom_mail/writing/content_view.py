"""All that the hash of an email covers, in readable form, for every place that shows it."""

from collections.abc import Sequence

from msgspec import Struct

from postroom_mail.html import hidden, targets
from postroom_mail.html.markup import is_cut
from postroom_mail.html.page import NO_PAGE
from postroom_mail.html.targets import LinkTarget
from postroom_mail.html.text import html_to_text, revealed
from postroom_mail.mime import headers
from postroom_mail.mime.headers import Headers
from postroom_mail.mime.parse import ParsedAttachment, parse_mail
from postroom_mail.reading.links import links
from postroom_mail.writing import passed_on
from postroom_mail.writing.content_hash import Content, HashedFile, content_of, hash_of, lasting_hash

RENDERING = 1  # a receipt names it: count up whenever this shows an email in another way
MOST_TARGETS = 200
MOST_OF_AN_APPOINTMENT = 20_000
MOST_OF_OTHER_TEXTS = 200_000
WORDS = {"link": "", "picture": "loads ", "form": "sends a form to "}


class FileView(Struct, frozen=True):
    filename: str
    content_type: str
    size_bytes: int
    sha256: str
    text: str = ""  # of an appointment, which calendars add automatically


class ContentView(Struct, frozen=True, kw_only=True):
    """`content` is what is hashed; the rest helps a person to read it."""

    content: Content
    content_hash: str
    lasting_hash: str  # the same for an email composed again from the same words
    files: list[FileView]
    text: str  # with marks for invisible characters
    html_source: str
    is_html_cut: bool  # there is more of it than is read, here or by the page that shows it
    html_text: str  # the text of the HTML, if it differs from the text
    hidden_text: str  # what the HTML holds and does not show
    targets: list[LinkTarget]  # where its links lead, and what it would load or send
    more_targets: int  # how many are not listed
    fields: list[tuple[str, str]]  # header fields that only programs read
    other_texts: list[tuple[str, str]] = []  # type and text, of an email that is redirected as it came
    source: str = ""  # of such an email

    @property
    def recipients(self) -> list[str]:
        return [*self.content.to, *self.content.cc, *self.content.bcc]


def view(raw: bytes, bcc: Sequence[str]) -> ContentView:
    """Return the view of an email written here.

    Takes time in proportion to its length: not for the event loop.
    """
    mail = parse_mail(raw)
    block = headers.split(raw, 0)
    content = content_of(mail, block, raw, bcc)
    found = list(_targets(content))
    is_passed_on = passed_on.is_passed_on(block.headers)
    return ContentView(
        content=content,
        content_hash=hash_of(content),
        lasting_hash=lasting_hash(content),
        files=[
            FileView(
                file.filename, file.content_type, len(each.content), file.sha256, _appointment(file, each)
            )
            for file, each in zip(content.attachments, mail.attachments, strict=True)
        ],
        text=revealed(content.body_text),
        html_source=revealed(content.body_html),
        is_html_cut=is_cut(content.body_html),
        html_text=_other_words(content),
        hidden_text=revealed(hidden.hidden_text(content.body_html)),
        targets=found[:MOST_TARGETS],
        more_targets=max(0, len(found) - MOST_TARGETS),
        fields=_fields(content, block.headers),
        other_texts=_other_texts(raw, content) if is_passed_on else [],
        source=revealed(passed_on.source(raw)) if is_passed_on else "",
    )


def _appointment(file: HashedFile, kept: ParsedAttachment) -> str:
    if not file.content_type.startswith("text/calendar"):
        return ""
    text = kept.content[:MOST_OF_AN_APPOINTMENT].decode("utf-8", "replace").replace("\r\n", "\n")
    left = len(kept.content) - MOST_OF_AN_APPOINTMENT
    return revealed(text) + (f"\n[{left:,} more bytes: see the attached mail]" if left > 0 else "")


def _other_words(content: Content) -> str:
    """Return the text of the HTML if it differs from the plain text: most people will read the HTML."""
    shown = html_to_text(content.body_html) if content.body_html else ""
    return "" if shown.split() == content.body_text.split() else revealed(shown)


def _targets(content: Content) -> list[LinkTarget]:
    """Return links of the HTML first, with their visible text; then addresses in the text."""
    found = dict.fromkeys(targets.targets(content.body_html))
    known = {each.url for each in found}
    written = (url for url in links(content.body_text, NO_PAGE) if url not in known)
    return [*found, *(LinkTarget("link", url, "") for url in written)]


def _other_texts(raw: bytes, content: Content) -> list[tuple[str, str]]:
    """Return alternatives that are neither the text nor the HTML, and texts in files. A cut is mentioned."""
    known = {" ".join(content.body_text.split()), " ".join(content.body_html.split())}
    found, room = [], MOST_OF_OTHER_TEXTS
    for part in passed_on.text_parts(raw):
        if " ".join(part.text.split()) in known:
            continue
        left = len(part.text) - room
        cut = f"\n[{left:,} more characters: see the source]" if left > 0 else ""
        found.append((part.content_type, revealed(part.text[:room]) + cut))
        room = max(0, -left)
    return found


def _fields(content: Content, written: Headers) -> list[tuple[str, str]]:
    shown = list(content.headers.items())
    if passed_on.is_passed_on(written):
        shown += passed_on.further_fields(written)
    elif written.count("auto-submitted"):
        shown.append(("Auto-Submitted", written.text("auto-submitted")))
    if content.in_reply_to is not None:
        shown.append(("In-Reply-To", content.in_reply_to))
    if content.references:
        shown.append(("References", " ".join(content.references)))
    return [(name, revealed(value)) for name, value in shown]


def to_text(shown: ContentView, most_characters: int) -> str:
    """Return the same as plain lines, for an email. Anything left out is mentioned."""
    content = shown.content
    rows = [
        ("From", content.sender),
        ("To", ", ".join(content.to)),
        ("Cc", ", ".join(content.cc)),
        ("Bcc", ", ".join(content.bcc)),
        ("Reply-To", content.reply_to or ""),
        ("Subject", content.subject),
        *shown.fields,
        *(("File", _file_line(file)) for file in shown.files),
        ("Content hash", shown.content_hash),
    ]
    parts = ["\n".join(f"{name + ':':<14} {revealed(value)}" for name, value in rows if value)]
    parts.append(quoted(shown.text, most_characters) or "(no text)")
    if shown.html_text:
        parts.append(f"Its HTML text differs:\n\n{quoted(shown.html_text, most_characters)}")
    elif content.body_html:
        parts.append("Its HTML has the same text.")
    if shown.hidden_text:
        parts.append(f"Its HTML hides this:\n\n{quoted(shown.hidden_text, most_characters)}")
    for file in shown.files:
        if file.text:
            parts.append(f"The appointment {file.filename}:\n\n{quoted(file.text, most_characters)}")
    for kind, text in shown.other_texts:
        parts.append(f"It also has this text ({kind}):\n\n{quoted(text, most_characters)}")
    if shown.targets:
        parts.append(f"Where its links lead:\n\n{_target_lines(shown)}")
    if shown.source:
        parts.append(f"It is redirected as it came:\n\n{quoted(shown.source, most_characters)}")
    return "\n\n".join(parts)


def _file_line(file: FileView) -> str:
    return f"{file.filename} ({file.content_type}, {file.size_bytes:,} bytes, SHA-256 {file.sha256})"


def _target_lines(shown: ContentView) -> str:
    lines = [f"- {WORDS[each.kind]}{each.url}{_label(each)}" for each in shown.targets]
    lines += [f"- and {shown.more_targets:,} more"] if shown.more_targets else []
    return "\n".join(lines)


def _label(target: LinkTarget) -> str:
    return f" (shown as: {revealed(target.label)})" if target.label and target.label != target.url else ""


def quoted(text: str, most_characters: int) -> str:
    lines = [f"| {line}" for line in text[:most_characters].splitlines()]
    if len(text) > most_characters:
        lines.append(f"[{len(text) - most_characters:,} more characters: see the attached mail]")
    return "\n".join(lines)

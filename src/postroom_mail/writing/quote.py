"""The quoted copy of the previous message below a reply, in text and in HTML (spec: threading rule 3)."""

import html
import re

from postroom_mail.writing.dates import to_date

PREVIOUS_LIMIT = 100_000  # characters: a long exchange must not grow without end
SENDER_LIMIT = 400
CUT_MARK = "[...]"
CLOSING_TAGS = (re.compile(r"</body\s*>", re.I), re.compile(r"</html\s*>", re.I))
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
QUOTE_STYLE = "margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex"


def quote_text(text: str, previous_text: str, previous_from: str, previous_at: int) -> str:
    quoted = (f"> {line}" for line in previous_lines(previous_text))
    attribution = attribution_line(previous_from, previous_at)
    return "\n".join([text.rstrip("\r\n"), "", attribution, *quoted, ""])


def quote_html(body: str, previous_text: str, previous_from: str, previous_at: int) -> str:
    """Quote only escaped text, so nothing in a stranger's HTML runs or loads in ours."""
    attribution = html.escape(attribution_line(previous_from, previous_at))
    quoted = "<br>\n".join(html.escape(line) for line in previous_lines(previous_text))
    block = (
        f"\n<br>\n<div>{attribution}</div>\n"
        f'<blockquote type="cite" style="{QUOTE_STYLE}">\n{quoted}\n</blockquote>\n'
    )
    end = end_of_content(body)
    return body[:end] + block + body[end:]


def attribution_line(previous_from: str, previous_at: int) -> str:
    sender = " ".join(INVISIBLE.sub(" ", previous_from[:SENDER_LIMIT]).split())
    return f"On {to_date(previous_at)}, {sender or 'somebody'} wrote:"


def previous_lines(previous_text: str) -> list[str]:
    text = previous_text[:PREVIOUS_LIMIT].replace("\r\n", "\n").replace("\r", "\n")
    lines = INVISIBLE.sub("", text).strip("\n").split("\n")
    return [*lines, CUT_MARK] if len(previous_text) > PREVIOUS_LIMIT else lines


def end_of_content(body: str) -> int:
    """Return where the document's content ends: before its last </body> or </html>, else at the end."""
    for tag in CLOSING_TAGS:
        starts = [match.start() for match in tag.finditer(body)]
        if starts:
            return starts[-1]
    return len(body)

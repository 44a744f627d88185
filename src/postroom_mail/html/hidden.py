"""What HTML contains and a reader does not see: text hidden by styles or attributes, and comments."""

from collections.abc import Iterator

from postroom_mail.html.page import read_page

COMMENT, END_OF_COMMENT = "<!--", "-->"


def hidden_text(html: str) -> str:
    """Return hidden text, a line for each piece. Complements `html_to_text`: no text is in both."""
    if not html:
        return ""
    hidden = (piece.text for piece in read_page(html).hidden if not piece.is_doubtful)
    pieces = (" ".join(piece.split()) for piece in (*hidden, *_comments(html)))
    return "\n".join(piece for piece in pieces if piece)


def _comments(html: str) -> Iterator[str]:
    """Yield comments, also conditional ones, which show some mail clients another text."""
    start = html.find(COMMENT)
    while start >= 0:
        end = html.find(END_OF_COMMENT, start + len(COMMENT))
        yield html[start + len(COMMENT) : end if end >= 0 else len(html)]
        start = html.find(COMMENT, end) if end >= 0 else -1

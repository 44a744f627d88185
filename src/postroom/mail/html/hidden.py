"""What HTML holds and a reader does not see: text that its styles or attributes hide, and comments."""

from collections.abc import Iterator

from postroom.mail.html.markup import VOID, Open, Text, nested
from postroom.mail.html.text import style_sheets
from postroom.mail.html.visibility import Look, Wardrobe

NO_TEXT = frozenset({"style", "script"})  # a program of the mail, that its source shows
COMMENT, END_OF_COMMENT = "<!--", "-->"


def hidden_text(html: str) -> str:
    """A line for each piece. What `html_to_text` says is not here, and the other way round."""
    if not html:
        return ""
    pieces = (" ".join(piece.split()) for piece in (*_hidden_pieces(html), *_comments(html)))
    return "\n".join(piece for piece in pieces if piece)


def _hidden_pieces(html: str) -> Iterator[str]:
    pieces = list(nested(html))
    wardrobe = Wardrobe()
    for css in style_sheets(pieces):
        wardrobe.read(css)
    looks, inside = [Look()], [""]
    for piece in pieces:
        if isinstance(piece, Text):
            if not looks[-1].is_visible and inside[-1] not in NO_TEXT:
                yield piece.data
        elif isinstance(piece, Open):
            if piece.name not in VOID:
                looks.append(wardrobe.dress(piece, looks[-1]))
                inside.append(piece.name)
        else:
            looks.pop()
            inside.pop()


def _comments(html: str) -> Iterator[str]:
    """Also those by which some readers of mail are given another text than the rest."""
    start = html.find(COMMENT)
    while start >= 0:
        end = html.find(END_OF_COMMENT, start + len(COMMENT))
        yield html[start + len(COMMENT) : end if end >= 0 else len(html)]
        start = html.find(COMMENT, end) if end >= 0 else -1

"""What HTML contains besides its visible text: all of its words, hidden elements, and misleading links."""

import re
from collections.abc import Iterator

from postroom_mail.authentication.organization import ascii_domain
from postroom_mail.html.markup import unescape
from postroom_mail.html.page import HtmlPage

MAX_READ_CHARS = 30_000
MAX_HTML_CHARS = 30_000
MAX_LINKS = 60
MAX_LINK_TEXT_CHARS = 600
MAX_COMPARED = 100
MAX_FORM_CHARS = 200_000
MAX_COMPARED_CHARS = 20_000
PREVIEW_CHARS = 250
FEWEST_HIDDEN_CHARS = 40

_TAG = re.compile(r"<[^<>]*+>")
_LINK_TARGET = re.compile(r"\bhref\s?=\s?[\"']?\s?https?://([^/\"'\s<>?#]{1,255})", re.IGNORECASE)
_PASSWORD_FIELD = re.compile(
    r"<input\b[^<>]{0,300}?\btype\s{0,5}=\s{0,5}[\"']?password\b[^<>]{0,100}", re.IGNORECASE
)
_LINK_START = re.compile(r"<[aA]\s")
_SHOWN_DOMAIN = re.compile(
    r"(?:https?://)?(?:www\.)?((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,18}+)(?![\w@.-])[^\s]{0,200}", re.IGNORECASE
)


def words_beside(page: HtmlPage, body_text: str) -> str:
    """The words of the HTML that are not in the text: hidden text, comments and descriptions."""
    text = body_text[:MAX_COMPARED_CHARS]
    hidden = [" ".join(unescape(each.text).split()) for each in page.hidden]
    shown = _paragraphs(page.text[:MAX_READ_CHARS]) if body_text is not page.text else []
    aside = [" ".join(unescape(each).split()) for each in page.aside]
    if not (hidden or shown or aside):
        return ""
    lines = {" ".join(line.split()) for line in text.split("\n")}
    beside = [each for each in dict.fromkeys([*hidden, *shown, *aside]) if each not in lines]
    if not beside:
        return ""
    joined = " ".join(text.split())
    # A text wrapped differently from the HTML has the same words in other lines.
    first = [paragraph for paragraph in beside[:MAX_COMPARED] if paragraph not in joined]
    return "\n\n".join(first + beside[MAX_COMPARED:])


def _paragraphs(text: str) -> list[str]:
    """Its lines, with single blanks between words; most texts have no others, which is checked first."""
    is_single_spaced = not any(each in text for each in ("  ", " \n", "\n ", "&"))
    if is_single_spaced and text.replace("\n", "").isprintable():
        return text.strip(" ").split("\n")
    return [" ".join(unescape(line).split()) for line in text.split("\n")]


def hidden_text(page: HtmlPage) -> str:
    """The first long text that is hidden, or may be; a preview line at the top is usual.

    Text repeated for another screen width is not hidden.
    """
    joined = ""
    for hidden in page.hidden:
        fewest = FEWEST_HIDDEN_CHARS if hidden.chars_before > PREVIEW_CHARS else PREVIEW_CHARS
        letters = sum(map(str.isalpha, hidden.text[:1_000]))
        if hidden.is_doubtful and letters:
            return hidden.text
        if letters >= fewest:
            joined = joined or " ".join(page.text.split())
            if hidden.text not in joined:
                return hidden.text
    return ""


def password_form(html: str) -> str:
    """The field of a form that takes a password; "" if there is none."""
    found = _PASSWORD_FIELD.search(html[:MAX_FORM_CHARS]) if "assword" in html else None
    return found[0] if found else ""


def misleading_links(html: str) -> Iterator[str]:
    """Links whose text is one domain and whose target is another."""
    _, *links = _LINK_START.split(html[:MAX_HTML_CHARS], MAX_LINKS)
    for link in links:
        tag, _, rest = link.partition(">")
        written = rest[:MAX_LINK_TEXT_CHARS].partition("</a")[0]
        if "." not in written and "&" not in written:
            continue
        text = unescape(_TAG.sub("", written)).strip()
        shown = _SHOWN_DOMAIN.fullmatch(text)
        target = _LINK_TARGET.search(tag[:2_000]) if shown else None
        domain = ascii_domain(target[1].rpartition("@")[2].partition(":")[0]) if target else None
        if shown and domain and not _are_related(shown[1].lower(), domain):
            yield f"{text[:80]} leads to {domain}"


def _are_related(shown: str, target: str) -> bool:
    return _organization(shown) == _organization(target)


def _organization(domain: str) -> str:
    """The registrable part: three labels below a short second level such as co.uk, else two."""
    labels = domain.split(".")
    count = 3 if len(labels) > 2 and len(labels[-2]) <= 3 and len(labels[-1]) == 2 else 2
    return ".".join(labels[-count:])

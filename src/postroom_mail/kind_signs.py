"""Signs in the body of the kind of an email, from its words, codes and links.

The rules take a tenth of a second to load, so they are imported when needed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading import body_signs as body_signs_of
from postroom_mail.reading.body_signs import BodySigns
from postroom_mail.reading.links import LinkDetail

if TYPE_CHECKING:
    from postroom_mail.screening.passage import Passage


def to_passage(mail: ParsedMail, shown: str) -> "Passage":
    """Return subject and text as one passage, for the rules and the readers of words."""
    from postroom_mail.screening.passage import Passage

    return Passage(f"{mail.subject}\n\n{shown}")


def cues(said: "Passage", text: str) -> "frozenset[str] | None":
    """Return cue words for codes found in the text; None if it was not read whole or is not ASCII."""
    return said.cues() if said.is_whole and text.isascii() else None


def body_signs(
    mail: ParsedMail,
    said: "Passage",
    body_text: str,
    new_words: str,
    codes: Sequence[str],
    links: Sequence[LinkDetail],
) -> BodySigns:
    """Return signs in the body of the kind of email. In an answer only the new words count."""
    is_answer = bool(mail.in_reply_to) or body_signs_of.is_answer(mail.subject)
    groups = said.kinds()
    return BodySigns(
        groups=_own_groups(mail.subject, body_text, new_words if is_answer else body_text, groups)
        if groups
        else groups,
        is_alert=body_signs_of.is_alert(mail.subject),
        is_bulk=body_signs_of.is_bulk(mail.body_html),
        is_answer=is_answer,
        has_code=bool(codes) and not is_answer and not body_signs_of.is_of_person(mail.body_html, body_text),
        has_unsubscribe_link=any(link.purpose == "unsubscribe" for link in links),
    )


def _own_groups(subject: str, body_text: str, own_words: str, groups: frozenset[str]) -> frozenset[str]:
    from postroom_mail.screening.passage import Passage

    own = Passage(f"{subject}\n\n{own_words}").kinds() if own_words is not body_text else groups
    footer = body_signs_of.footer(body_text) if "list" in groups else ""
    of_subject = Passage(subject).kinds() if "reply" in groups else frozenset()
    return (
        (own - {"list", "reply"})
        | (Passage(footer).kinds() & {"list"} if footer else frozenset())
        | (of_subject & {"reply"})
    )

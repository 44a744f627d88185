"""The values that a received email holds, which a send must not carry to just anybody."""

from collections.abc import Sequence
from itertools import islice

from postroom.mailbox.attachments import Attachment
from postroom_mail.html.page import HtmlPage
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.screening import values


def value_keys(
    mail: ParsedMail, body_text: str, new_words: str, page: HtmlPage, found_codes: Sequence[str]
) -> tuple[str, ...]:
    """The values in its texts, its links and the addresses that it names, but for its sender's."""
    targets = (anchor.url for anchor in page.anchors)
    people = (each.address for each in (*mail.reply_to, *mail.to, *mail.cc))
    fields = "\n".join((mail.subject, *targets, *islice(people, values.MOST_VALUES)))
    own = values.address(mail.from_address).key
    found = values.held_by(body_text, new_words) | values.held_by(fields, "")
    if mail.body_text and page.text:  # a reader of the HTML may find other words there
        found |= values.held_by(page.text, "")
    stored = values.with_few_links(found)
    return (*(key for key in stored if key != own), *(values.code(each).key for each in found_codes))


def keys_of_files(mail: ParsedMail, files: Sequence[Attachment]) -> tuple[str, ...]:
    """The files themselves, and the values in the texts that were read from them."""
    found = {value.key: value for value in (values.file(file.content, "") for file in mail.attachments)}
    for file in files:
        if file.parsed_text:
            found |= values.held_by(file.parsed_text)
    return tuple(values.with_few_links(found))

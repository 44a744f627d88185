"""Text of emails and of web pages saved as mail: the main headers, the words, and the files inside."""

from collections.abc import Iterator

from postroom_mail.files.outcome import ReadInside
from postroom_mail.html.text import html_to_text
from postroom_mail.mime import headers
from postroom_mail.mime.charset import clean_line
from postroom_mail.mime.parse import ParsedMail, parse_mail

MAX_ATTACHMENTS = 100


def email_text(content: bytes, read_inside: ReadInside) -> Iterator[str]:
    mail = parse_mail(content)
    fields = {
        "From": mail.from_addr,
        "To": mail.header_to,
        "Cc": ", ".join(map(str, mail.cc)),
        "Date": clean_line(headers.split(content, 0).headers.text("date")),
        "Subject": mail.subject,
    }
    yield "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    yield f"\n{_words(mail)}\n"
    for attachment in mail.attachments[:MAX_ATTACHMENTS]:
        pieces = read_inside(attachment.content_type, attachment.filename, attachment.content)
        if (first := next(pieces, None)) is not None:
            yield f"\n{attachment.filename}:\n{first}"
            yield from pieces
            yield "\n"


def saved_page_text(content: bytes) -> Iterator[str]:
    yield _words(parse_mail(content))


def _words(mail: ParsedMail) -> str:
    return mail.body_text or html_to_text(mail.body_html)

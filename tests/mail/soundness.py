"""What holds for every parsed mail, whatever the bytes were."""

from pathlib import Path

from postroom_mail.mime import filenames
from postroom_mail.mime.address import Address
from postroom_mail.mime.parse import ParsedAttachment, ParsedMail

SAMPLES = Path(__file__).parent / "samples"


def assert_is_sound(mail: ParsedMail) -> None:
    assert_strings_can_be_stored(mail)
    assert "structure could not be read" not in mail.parse_error
    assert "\r" not in mail.body_text + mail.body_html
    for line in (mail.subject, mail.from_addr, mail.header_to, mail.message_id, mail.report_type):
        assert not set("\r\n\t") & set(line)
    for id_ in (*mail.in_reply_to, *mail.references):
        assert id_[0] == "<"
        assert id_[-1] == ">"
    assert_names_are_safe([attachment.filename for attachment in mail.attachments])


def assert_names_are_safe(names: list[str]) -> None:
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert name
        assert "/" not in name
        assert filenames.clean(name) == name


def assert_strings_can_be_stored(value: object) -> None:
    if isinstance(value, str):
        value.encode()
        assert "\0" not in value
    elif isinstance(value, tuple):
        for item in value:
            assert_strings_can_be_stored(item)
    elif isinstance(value, (ParsedMail, ParsedAttachment, Address)):
        for name in value.__struct_fields__:
            assert_strings_can_be_stored(getattr(value, name))

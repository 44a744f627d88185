"""Nothing in a mail can drive the terminal that shows it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from postroom_client.cli.safe_text import json_text, many_lines, one_line
from tests.samples import samples


@samples(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße 漢字 👍", "Grüße 漢字 👍"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\r\nb\tc", "a\\x0d\\x0ab\\x09c"),
        ("\x9b2J", "\\x9b2J"),
        ("invoice\u202efdp.exe", "invoice\\u202efdp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_and_direction_characters_of_a_field_are_shown_as_escapes(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_a_body_keeps_its_lines_and_tabs_and_nothing_else() -> None:
    assert many_lines("a\r\nb\rc\nd\te\x1b]0;title\x07") == "a\nb\nc\nd\te\\x1b]0;title\\x07"


def test_a_backslash_of_the_writer_stays_as_it_is() -> None:
    assert many_lines("C:\\x09") == "C:\\x09"


@given(st.text())
def test_what_is_shown_holds_no_control_character(text: str) -> None:
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in one_line(text))
    assert not any(
        (ord(character) < 32 and character not in "\n\t") or 127 <= ord(character) < 160
        for character in many_lines(text)
    )


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_safe_json_means_the_same(text: str) -> None:
    document = json.dumps({"subject": text}, ensure_ascii=False)
    assert json.loads(json_text(document)) == {"subject": text}
    assert not any(127 <= ord(character) < 160 for character in json_text(document))

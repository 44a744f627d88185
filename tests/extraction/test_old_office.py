"""Text of doc, ppt, xls, msg and rtf: real files and hand-made ones, and hostile ones end in a reason."""

import gzip
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files.extract import extract
from postroom_mail.files.extraction import MAX_WHOLE_CHARS, METHODS, REASONS, Extraction
from postroom_mail.files.old_office.compound import MAX_READ_BYTES, MAX_VISITS, CompoundFile
from postroom_mail.files.old_office.compressed_rtf import unpacked_rtf
from postroom_mail.files.old_office.outlook import outlook_text
from tests.extraction.compound_files import attachment, compound_file, message, recipient
from tests.mail import files
from tests.samples import samples

SAMPLES = Path(__file__).parent / "samples"
LETTER = (
    "Offer no. 7\nDear Jürgen, the price is 1 200 € — Привет, 你好 😀. Seen.\nSee our page first.\n"
    "Desk\t800\nChair\t400\nKind regards"
)
# In steps of 100 ns since 1601.
SENT_AT = (
    (datetime(2026, 11, 15, 12, 30, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC))
    // timedelta(microseconds=1)
    * 10
)


def read(content: bytes, filename: str = "", content_type: str = "") -> Extraction:
    return extract(content_type, filename, content)


def sample(name: str) -> bytes:
    return gzip.decompress((SAMPLES / f"{name}.gz").read_bytes())


def mail(**changes: bytes) -> bytes:
    body = {"1000": "See the file."} if not changes else {}
    texts = {"0037": "Offer", "0C1A": "Ann Example", "5D01": "ann@postroom.example", **body}
    inner = message({"0037": "Inner", "1000": "Words of the inner mail"}, {}, {}, {}, head_bytes=24)
    people = {
        "__recip_version1.0_#00000000": recipient("Bob", "bob@postroom.example", 1),
        "__recip_version1.0_#00000001": recipient("", "cleo@postroom.example", 2),
        "__attach_version1.0_#00000000": attachment("page.html", b"<p>Words of the file"),
        "__attach_version1.0_#00000001": attachment("Inner", inner),
    }
    return compound_file(message(texts, changes, {0x0039: SENT_AT}, dict(people)))


def test_an_old_word_document_gives_what_a_reader_sees() -> None:
    assert read(sample("letter.doc")) == Extraction("office", LETTER + "\n\n\tWithout tax.")


def test_an_old_word_document_in_several_saves_is_read_by_its_piece_table() -> None:
    stream = bytearray(2_000)
    struct.pack_into("<HH", stream, 0, 0xA5EC, 0x00C1)
    struct.pack_into("<I", stream, 0x4C, 11)
    stream[1_000:1_005] = b"world"
    stream[1_100:1_112] = "hello ".encode("utf-16-le")
    bounds = struct.pack("<III", 0, 6, 11)
    pieces = struct.pack("<HIHHIH", 0, 1_100, 0, 0, 2_000 | 0x40000000, 0)
    table = b"\x02" + struct.pack("<I", len(bounds + pieces)) + bounds + pieces
    struct.pack_into("<II", stream, 0x01A2, 0, len(table))
    file = compound_file({"WordDocument": bytes(stream), "0Table": table})
    assert read(file) == Extraction("office", "hello world")


def test_a_word_95_document_gives_its_text() -> None:
    stream = bytearray(1_200)
    struct.pack_into("<HH", stream, 0, 0xA5DC, 0x0065)
    struct.pack_into("<I", stream, 0x18, 1_000)
    struct.pack_into("<I", stream, 0x34, 9)
    stream[1_000:1_009] = "Grüße\rzwei"[:9].encode("cp1252")
    assert read(compound_file({"WordDocument": bytes(stream)})) == Extraction("office", "Grüße\nzwe")


def test_old_slides_come_in_order_without_hidden_ones() -> None:
    text = "First slide\nPlain point\nGrüße, Привет\n\nLast slide\nThank you"
    assert read(sample("talk.ppt")) == Extraction("office", text)


def test_old_slides_that_are_read_by_half_say_so() -> None:
    content = bytearray(sample("talk.ppt"))
    slide = b"\x0f\x00\xee\x03"
    content[content.rfind(slide) + 2] ^= 1
    text = "First slide\nPlain point\nGrüße, Привет\n\n[1 of 3 slides could not be read whole]"
    assert read(bytes(content)) == Extraction("office", text)


def test_an_old_workbook_gives_texts_numbers_and_dates_but_no_hidden_sheet() -> None:
    assert read(sample("sums.xls")) == Extraction("office", "Sums\nGröße, Привет\t\t\t1.5\n2026-11-15\t42\t1")


def test_a_cell_far_out_costs_nothing() -> None:
    found = read(files.xls("a", 1, row=65_535, column=255))
    assert found == Extraction("office", "Data\na\n" + "\t" * 50 + "1")


def test_strings_of_a_workbook_go_on_in_the_next_record() -> None:
    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    begin = record(0x0809, struct.pack("<HHHHII", 0x0600, 5, 0, 0, 0, 0))
    strings = record(0x00FC, struct.pack("<II", 2, 2) + struct.pack("<HB", 6, 0) + b"abc")
    strings += record(0x003C, b"\x01" + "日本語".encode("utf-16-le") + struct.pack("<HB", 2, 0) + b"xy")
    place = len(begin) + len(strings) + 4 + 6 + 3 + 4
    book = begin + record(0x0085, struct.pack("<IH", place, 0) + b"\x01\x00S") + strings + record(0x000A, b"")
    formula = struct.pack("<HHH", 0, 3, 0) + b"\0\0\0\0\0\0\xff\xff" + bytes(8)
    sheet = (
        record(0x0809, struct.pack("<HHHHII", 0x0600, 16, 0, 0, 0, 0))
        + record(0x00FD, struct.pack("<HHHI", 0, 0, 0, 0))
        + record(0x00FD, struct.pack("<HHHI", 0, 1, 0, 1))
        + record(0x00BD, struct.pack("<HHHIH", 1, 0, 0, (7 << 2) | 2, 0)[:10] + struct.pack("<H", 0))
        + record(0x0006, formula)
        + record(0x0207, struct.pack("<HB", 4, 0) + b"text")
        + record(0x0205, struct.pack("<HHHBB", 2, 0, 0, 1, 0))
        + record(0x000A, b"")
    )
    found = read(compound_file({"Workbook": book + sheet}))
    assert found == Extraction("office", "S\nabc日本語\txy\n7\n\t\t\ttext\nTRUE")


def test_a_workbook_of_excel_95_is_read_in_its_code_page() -> None:
    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    begin = record(0x0809, struct.pack("<HHHH", 0x0500, 5, 0, 0)) + record(0x0042, struct.pack("<H", 1250))
    name, word = "Łódź".encode("cp1250"), "Zażółć".encode("cp1250")
    place = len(begin) + 4 + 7 + len(name) + 4
    sheet = record(0x0085, struct.pack("<IHB", place, 0, len(name)) + name) + record(0x000A, b"")
    cells = (
        record(0x0809, struct.pack("<HHHH", 0x0500, 16, 0, 0))
        + record(0x0204, struct.pack("<HHHH", 0, 0, 0, len(word)) + word)
        + record(0x027E, struct.pack("<HHHI", 0, 1, 0, (-7 << 2) & 0xFFFFFFFF | 2))
        + record(0x000A, b"")
    )
    assert read(compound_file({"Book": begin + sheet + cells})) == Extraction("office", "Łódź\nZażółć\t-7")


def test_a_mail_of_outlook_gives_its_head_its_words_and_what_is_inside() -> None:
    text = (
        "From: Ann Example <ann@postroom.example>\nTo: Bob <bob@postroom.example>\n"
        "Cc: cleo@postroom.example\nDate: 2026-11-15 12:30 UTC\nSubject: Offer\n\nSee the file.\n\n"
        "page.html:\nWords of the file\nInner:\nSubject: Inner\n\nWords of the inner mail"
    )
    assert read(mail(), "a.msg", "application/vnd.ms-outlook") == Extraction("office", text)


@samples(
    ("number", "content"),
    [
        ("1013", b"<p>only HTML"),
        ("1009", struct.pack("<IIII", 30, 18, 0x414C454D, 0) + b"{\\rtf1 only HTML}"),
    ],
)
def test_a_mail_of_outlook_without_plain_text_gives_the_other(number: str, content: bytes) -> None:
    assert "\n\nonly HTML\n" in (read(mail(**{number: content})).text or "")


def test_packed_rich_text_is_unpacked_as_its_specification_shows() -> None:
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert unpacked_rtf(packed) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


@samples(
    ("content", "text"),
    [
        (b"{\\rtf1\\ansi Hello\\par world}", "Hello\nworld"),
        (b"{\\rtf1\\ansi\\ansicpg1251 \\'cf\\'f0\\'e8\\'e2\\'e5\\'f2}", "Привет"),
        (b"{\\rtf1{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset128 B;}}\\f1 \\'93\\'fa\\f0  \\'e4}", "日 ä"),
        (b"{\\rtf1\\uc1 \\u26085?\\u-10179?\\u-8704? ok}", "日😀 ok"),
        (b"{\\rtf1 seen{\\v hidden}{\\deleted gone}{\\*\\unknown apart}{\\info{\\title T}} end}", "seen end"),
        (b"{\\rtf1 a{\\pict\\bin5 }}}}}} b}", "a b"),
        (b'{\\rtf1{\\field{\\*\\fldinst HYPERLINK "x"}{\\fldrslt the link}}}', "the link"),
        (b"{\\rtf1\\trowd\\intbl a\\par b\\cell c\\cell\\row\\pard end}", "a b\tc\nend"),
        (
            b"{\\rtf1\\fromhtml1{\\*\\htmltag64 <p>}\\htmlrtf \\par\\htmlrtf0 words{\\*\\htmltag72 </p>}}",
            "words",
        ),
        (b"{\\rtf1 brace \\{ and \\\\ and \\~x}after", "brace { and \\ and \xa0x"),
        (b"{\\rtf1 " + b"{" * 5_000 + b"deep" + b"}" * 5_000 + b" end}", "deep end"),
        (b"{\\rtf1 cut", "cut"),
    ],
)
def test_rich_text_gives_its_words(content: bytes, text: str) -> None:
    assert read(content, "a.rtf", "text/rtf") == Extraction("office", text)


def encrypted_word() -> bytes:
    stream = bytearray(600)
    struct.pack_into("<HH6xH", stream, 0, 0xA5EC, 0x00C1, 0x0100)
    return compound_file({"WordDocument": bytes(stream)})


@samples(
    "content",
    [
        encrypted_word(),
        compound_file({"EncryptionInfo": b"x", "EncryptedPackage": b"x" * 5_000}),
        compound_file({"Workbook": struct.pack("<HH16sHH", 0x0809, 16, bytes(16), 0x2F, 0)}),
        compound_file(
            {"PowerPoint Document": b"x", "Current User": struct.pack("<8xIII", 20, 0xF3D1C4DF, 0)}
        ),
    ],
)
def test_a_password_is_its_own_reason(content: bytes) -> None:
    assert read(content) == Extraction("encrypted", None)


def test_a_compound_file_of_another_kind_has_no_text_for_us() -> None:
    assert read(compound_file({"Other": b"x"}), "a.doc") == Extraction("unsupported", None)


def test_the_table_of_a_large_file_goes_on_in_an_extension() -> None:
    content = bytes(range(256)) * 36_000
    file = CompoundFile.open(compound_file({"small": b"words", "large": content}))
    assert file.stream("LARGE") == content
    assert file.stream("small") == b"words"
    assert file.stream("other") == b""


def test_chains_that_run_in_a_circle_end() -> None:
    content = bytearray(compound_file({"WordDocument": b"x" * 5_000}))
    table = content.rfind(struct.pack("<I", 0xFFFFFFFD)) // 512 * 512
    for place in range(128):
        struct.pack_into("<I", content, table + place * 4, place)
    assert read(bytes(content)).method in REASONS


def test_a_table_that_names_itself_again_and_again_is_read_once() -> None:
    end = 0xFFFFFFFE
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack("<IIIIIIIII", 0, 2**31, 1, 0, 4096, end, 0, 2, 2**30)
    content = header + bytes(4) * 109 + struct.pack("<128I", *[0] * 128) + bytes(512) + bytes(4) * 127
    assert read(content + struct.pack("<I", 2) + bytes(4096)).method in REASONS


def test_streams_that_share_their_bytes_stop_at_the_budget() -> None:
    file = CompoundFile.open(compound_file({"a": b"x" * 1_000_000}))
    place = file.items()["a"]
    total = sum(len(file.stream_at(place)) for _ in range(100))
    assert total <= MAX_READ_BYTES


def test_folders_that_hold_themselves_end() -> None:
    tree = message({"1000": "words"}, {}, {}, {"__attach_version1.0_#00000000": attachment("self", {})})
    content = bytearray(compound_file(tree))
    name = "__substg1.0_3701000D".encode("utf-16-le")
    struct.pack_into("<I", content, content.find(name) + 76, 1)
    assert "words" in (read(bytes(content)).text or "")


def test_mails_that_hold_each_other_without_end_stop() -> None:
    """Each of a hundred attachments is the very folder that holds them all."""
    attachments = {f"__attach_version1.0_#{number:08}": attachment("x", {}) for number in range(100)}
    content = bytearray(compound_file(message({"1000": ""}, {}, {}, dict(attachments))))
    name = "__substg1.0_3701000D".encode("utf-16-le")
    place = content.find(name)
    first = CompoundFile.open(bytes(content)).entries[0].child
    while place >= 0:
        struct.pack_into("<I", content, place + 76, first)
        place = content.find(name, place + 1)
    file = CompoundFile.open(bytes(content))
    assert file.visits_left == MAX_VISITS
    file.visits_left = 50_000
    assert len(list(outlook_text(file, lambda *inner: iter(())))) < 50_000
    assert file.visits_left == 0


def test_pieces_that_name_the_same_bytes_stop_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_mail.files.extract.REST_SECONDS", 60.0)  # not at that of time
    stream = bytearray(6_000)
    struct.pack_into("<HH", stream, 0, 0xA5EC, 0x00C1)
    struct.pack_into("<I", stream, 0x4C, 2**31)
    stream[1_000:] = b"word " * 1_000
    count = 50_000
    bounds = struct.pack(f"<{count + 1}I", *(number * 5_000 for number in range(count + 1)))
    pieces = struct.pack("<HIH", 0, 2_000 | 0x40000000, 0) * count
    table = b"\x02" + struct.pack("<I", len(bounds + pieces)) + bounds + pieces
    struct.pack_into("<II", stream, 0x01A2, 0, len(table))
    found = read(compound_file({"WordDocument": bytes(stream), "0Table": table}))
    assert MAX_WHOLE_CHARS - 10 < len(found.text or "") <= MAX_WHOLE_CHARS


@given(st.sampled_from(["letter.doc", "talk.ppt", "sums.xls", "mail"]), st.data())
def test_any_flipped_bytes_end_in_a_text_or_a_reason(name: str, data: st.DataObject) -> None:
    content = bytearray(mail() if name == "mail" else sample(name))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(content))
    assert found.method in (REASONS if found.text is None else METHODS)


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"\\u26085?", b"\\'e4", b"\\*", b"\\bin9 ", b"\\f1", b"\\v ", b"a"])
    )
)
def test_any_rich_text_ends_in_a_text(tokens: list[bytes]) -> None:
    assert read(b"{\\rtf1" + b"".join(tokens)).method == "office"


@given(st.binary(max_size=200))
def test_any_packed_rich_text_is_unpacked(packed: bytes) -> None:
    assert isinstance(unpacked_rtf(struct.pack("<IIII", 0, 0, 0x75465A4C, 0) + packed), bytes)

"""Text comes out of real files of every kind, and hostile ones end in a reason."""

import codecs
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files import extract as extracting
from postroom_mail.files.archive import Archive, UnpackingBudget
from postroom_mail.files.extract import UNREAD_REST, extract
from postroom_mail.files.extraction import (
    MAX_CONTENT_BYTES,
    MAX_TEXT_CHARS,
    MAX_WHOLE_CHARS,
    METHODS,
    REASONS,
    Extraction,
)
from tests.mail import files
from tests.samples import samples

PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
CELL = "<w:tc>{}</w:tc>"
STARTS = [
    b"",
    b"%PDF-1.4\n",
    b"PK\x03\x04",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "Workbook".encode("utf-16-le"),
    b"\x89PNG\r\n\x1a\n",
    codecs.BOM_UTF16_LE,
    b"<html>",
]
NAMES = ["a.pdf", "a.docx", "a.xls", "a.csv", "a.tsv", "a.html", "a.txt", "a.eml", "a", "a.bin"]
TYPES = [
    "",
    "text/plain; charset=idna",
    "text/csv",
    "message/rfc822",
    "application/octet-stream",
    "image/png",
]


def read(content: bytes, filename: str = "", content_type: str = "") -> Extraction:
    return extract(content_type, filename, content)


def test_a_pdf_gives_the_words_of_its_pages() -> None:
    assert read(files.pdf("Hello from", "a page")) == Extraction("pdf", "Hello from\na page")


def test_the_bytes_outweigh_the_name_and_the_type() -> None:
    assert read(files.pdf("Hello"), "notes.txt", "text/plain").method == "pdf"
    assert read(b"just words", "report.pdf", "application/pdf").method == "unsupported"


def test_a_word_document_gives_paragraphs_and_tables() -> None:
    cells = CELL.format(PARAGRAPH.format("a") + PARAGRAPH.format("b")) + CELL.format(PARAGRAPH.format("c"))
    body = (
        '<w:p><w:pPr><w:tabs><w:tab w:pos="9"/></w:tabs></w:pPr><w:r><w:t>One</w:t><w:tab/><w:t>two</w:t>'
        f"<w:br/><w:t>three</w:t></w:r></w:p><w:tbl><w:tr>{cells}</w:tr></w:tbl>{PARAGRAPH.format('end')}"
    )
    assert read(files.docx(body)) == Extraction("office", "One\ttwo\nthree\na b\tc\nend")


def test_hidden_and_deleted_words_of_a_document_are_left_out() -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r>"
    deleted = "<w:del><w:r><w:delText>secret</w:delText><w:t>secret</w:t></w:r></w:del>"
    body = f"<w:p>{hidden}{deleted}<w:r><w:t>seen</w:t></w:r></w:p>"
    assert read(files.docx(body)) == Extraction("office", "seen")


def test_slides_come_in_their_order() -> None:
    slides = [f"slide {number}" for number in range(1, 12)]
    assert read(files.pptx(*slides)) == Extraction("office", "\n\n".join(slides))


def test_a_workbook_gives_texts_numbers_dates_and_gaps_but_no_hidden_sheet() -> None:
    rows = (
        '<row><c r="A1" t="s"><v>1</v></c><c r="C1" s="1"><v>45000</v></c><c t="b"><v>1</v></c></row>'
        '<row><c/></row><row><c r="A3" s="2"><v>45000.5</v></c><c s="3"><v>1.5</v></c>'
        '<c t="inlineStr"><is><t>inline</t></is></c><c t="s"><v>99</v></c></row>'
    )
    text = "Data\nsecond\t\t2023-03-15\tTRUE\n2023-03-15 12:00:00\t1.5\tinline"
    assert read(files.xlsx(rows, ("first", "second"))) == Extraction("office", text)


def test_an_old_workbook_gives_its_cells() -> None:
    assert read(files.xls("Grüße", 42), "a.xls", "application/vnd.ms-excel") == Extraction(
        "office", "Data\nGrüße\t42"
    )


def test_open_documents_give_their_text() -> None:
    text = (
        '<text:h>Head</text:h><text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>'
        "<text:tracked-changes><text:p>secret</text:p></text:tracked-changes>"
    )
    assert read(files.open_document("text", text)) == Extraction("office", "Head\na   b\tc\nd")


def test_open_spreadsheets_give_their_rows() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    gap = '<table:table-cell table:number-columns-repeated="2"/>'
    row = f"<table:table-row>{cell.format('', 'a')}{gap}{cell.format('', 'b')}</table:table-row>"
    empty = f'<table:table-row table:number-rows-repeated="1000000">{gap}</table:table-row>'
    body = f'<table:table table:name="Sums">{row}{empty}</table:table>'
    assert read(files.open_document("spreadsheet", body)) == Extraction("office", "Sums\na\t\t\tb")


@samples(
    ("content", "filename", "text"),
    [
        ('Name,Größe\nAnn,"1,5\nm"\n'.encode(), "a.csv", "Name\tGröße\nAnn\t1,5 m"),
        ("Name;Größe\r\nAnn;1,5\r\n".encode("cp1252"), "a.csv", "Name\tGröße\nAnn\t1,5"),
        ("Name\tA, B; C\nAnn\t2\n".encode("utf-16"), "a.tsv", "Name\tA, B; C\nAnn\t2"),
    ],
)
def test_tables_of_text_are_read_in_any_usual_spelling(content: bytes, filename: str, text: str) -> None:
    assert read(content, filename) == Extraction("csv", text)


def test_a_page_gives_what_a_reader_sees() -> None:
    page = b"<!DOCTYPE html><title>t</title><p>Hello<p hidden>secret"
    assert read(page, "page.html", "text/html") == Extraction("html", "Hello")
    assert read(page) == Extraction("html", "Hello")


@samples(
    ("content", "content_type", "filename"),
    [
        (b'{"a": 1}', "application/json", "a.json"),
        (b'{"a": 1}', "application/vnd.api+json", ""),
        (b"# Title", "application/octet-stream", "readme.md"),
        (b"BEGIN:VCALENDAR\r\nEND:VCALENDAR", "text/calendar", "a.ics"),
        ("Grüße".encode("latin-1"), "text/plain; charset=iso-8859-1", "a.txt"),
        ("Grüße".encode("utf-16"), "text/plain", "a.txt"),
        ("Привет".encode("koi8-r"), 'text/plain; charset="koi8-r"', "a.txt"),
        (b"plain words", "", ""),
        (b"", "text/plain", "empty.txt"),
    ],
)
def test_plain_kinds_are_given_as_they_are(content: bytes, content_type: str, filename: str) -> None:
    found = read(content, filename, content_type)
    assert found.method == "text"
    assert found.text in (content.decode("utf-8", "ignore").replace("\r\n", "\n"), "Grüße", "Привет")


def test_a_mail_gives_its_main_headers_and_its_words() -> None:
    mail = (
        b"From: =?utf-8?q?J=C3=BCrgen?= <j@x.example>\r\nX-Other: no\r\nSubject: Hi\r\n"
        b"Content-Type: text/html\r\n\r\n<p>Hello<p hidden>secret"
    )
    assert read(mail, "a.eml", "message/rfc822") == Extraction(
        "text", "From: Jürgen <j@x.example>\nSubject: Hi\n\nHello"
    )


@samples(
    ("content", "filename"),
    [
        (b"\x00\x01\x02" * 100, "a.txt"),
        (files.png("HELP"), "a.png"),
        (b"\xff\xfb\x90\x44" * 50, "a.mp3"),
        (b"<svg/>", "a.bin"),
    ],
)
def test_files_without_text_for_us_say_so(content: bytes, filename: str) -> None:
    assert read(content, filename, "application/x-other") == Extraction("unsupported", None)


def test_pictures_are_read_by_the_reader_that_is_given() -> None:
    assert extract("image/png", "a.png", files.png("HELP"), lambda picture: "HELP\f") == Extraction(
        "ocr", "HELP"
    )


def test_a_file_over_the_limit_is_not_opened() -> None:
    assert read(b"a" * (MAX_CONTENT_BYTES + 1), "a.txt") == Extraction("skipped_too_large", None)


@pytest.mark.parametrize(
    ("content", "filename"),
    [
        (b"word " * 250_000, "a.txt"),
        ((b"word," * 19 + b"word\n") * 11_000, "a.csv"),
        (files.docx(PARAGRAPH.format("word" * 125) * 2_100), "a.docx"),
        (files.pptx(*["word" * 25_000] * 11), "a.pptx"),
    ],
)
def test_text_is_cut_at_the_limit(content: bytes, filename: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extracting, "REST_SECONDS", 600.0)
    text = read(content, filename).text
    assert text is not None
    assert MAX_WHOLE_CHARS - 100 < len(text) <= MAX_WHOLE_CHARS


def test_behind_what_a_message_shows_a_reader_has_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extracting, "REST_SECONDS", -1.0)
    text = read(files.pptx(*["word " * 2_000] * 20), "a.pptx").text
    assert text is not None
    assert MAX_TEXT_CHARS <= len(text) < MAX_TEXT_CHARS + 11_000


def test_text_holds_no_nul_surrogate_control_or_invisible_character() -> None:
    content = "a\x07b\u200bc\x9fd\x0ce\r\nf\tg, and some ordinary words".encode()
    assert read(content, "a.txt").text == "abcd\ne\nf\tg, and some ordinary words"


def test_a_zip_bomb_stops_at_the_budget() -> None:
    bomb = files.docx(PARAGRAPH.format("seen") + "<w:x/>" * 100_000)
    opened = Archive.open(bomb, UnpackingBudget(bytes_left=200_000))
    events = sum(1 for _ in opened.events("word/document.xml"))
    assert 0 < events < 80_000
    assert opened.budget.bytes_left == 0


def test_too_many_entries_are_refused() -> None:
    assert read(files.zipped({f"{number}": "" for number in range(10_001)})) == Extraction("failed", None)


def test_entities_are_not_expanded() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(10))
    bomb = files.docx(PARAGRAPH.format("&e9;"), f"<!DOCTYPE x [{entities}]>")
    assert read(bomb) == Extraction("failed", None)


def test_default_attributes_are_not_filled_in() -> None:
    """Each empty paragraph would get a copy of a long value."""
    declared = f'<!DOCTYPE x [<!ATTLIST p long CDATA "{"x" * 1_000}">]>'
    assert read(files.docx("<w:p/>" * 1_000, declared)) == Extraction("failed", None)


def test_entities_from_files_are_not_read() -> None:
    entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    assert read(files.docx(PARAGRAPH.format("&e;"), entity)) == Extraction("failed", None)


@samples(
    "content",
    [
        b"%PDF-1.4 nothing",
        b"PK\x03\x04 nothing",
        files.docx("<w:p>")[:-30],
        files.xls("a", 1)[:700] + "Workbook".encode("utf-16-le"),
        files.zipped({"word/document.xml": "<a"}),
    ],
)
def test_broken_files_fail(content: bytes) -> None:
    assert read(content).method in ("failed", "office")
    assert not read(content).text


def test_what_came_before_the_damage_is_kept() -> None:
    broken = files.zipped(
        {"word/document.xml": f"<w:d {files.WORD}>{PARAGRAPH.format('kept')}<w:p>" + " " * 70_000 + "</x>"}
    )
    assert read(broken) == Extraction("office", f"kept\n\n{UNREAD_REST}")


def test_unusual_compression_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("zip") / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("word/document.xml", files.docx(PARAGRAPH.format("x")))
    assert read(path.read_bytes()) == Extraction("failed", None)


@given(st.sampled_from(STARTS), st.binary(max_size=300), st.sampled_from(NAMES), st.sampled_from(TYPES))
def test_any_bytes_end_in_a_text_or_a_reason(start: bytes, rest: bytes, name: str, content_type: str) -> None:
    found = extract(content_type, name, start + rest, lambda picture: "")
    assert found.method in (REASONS if found.text is None else METHODS)
    assert found.text is None or len(found.text) <= MAX_WHOLE_CHARS


@given(st.sampled_from([files.pdf("Hello"), files.docx(PARAGRAPH.format("x")), files.xls("a", 1)]), st.data())
def test_any_flipped_byte_ends_in_a_text_or_a_reason(content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    flipped = content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]
    found = read(flipped)
    assert found.method in (REASONS if found.text is None else METHODS)

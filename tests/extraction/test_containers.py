"""Files inside files: zip, epub, mails, pieces of a document in another format. All share one budget."""

import io
import struct
import warnings
import zipfile

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files import archive
from postroom_mail.files import extract as extraction
from postroom_mail.files.extract import UNREAD_REST, extract
from postroom_mail.files.extraction import MAX_WHOLE_CHARS, METHODS, REASONS, Extraction
from tests.mail import files
from tests.samples import samples

PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
CONTAINER = '<container><rootfiles><rootfile full-path="book/a.opf"/></rootfiles></container>'
PACKAGE = (
    '<package><manifest><item id="one" href="text/one%201.xhtml"/><item id="two" href="two.xhtml"/>'
    '<item id="notes" href="notes.xhtml"/></manifest><spine><itemref idref="two"/><itemref idref="one"/>'
    '<itemref idref="notes" linear="no"/><itemref idref="two"/><itemref idref="gone"/></spine></package>'
)
MAIL = (
    b"From: ann@postroom.example\r\nSubject: Outer\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHello\r\n"
    b"--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\na,b\r\n"
    b"--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: Inner\r\n\r\nDeep words\r\n--b--\r\n"
)
SAVED_PAGE = (
    b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b; type=text/html\r\n\r\n"
    b"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>From a saved page\r\n--b--\r\n"
)


def read(content: bytes, filename: str = "", content_type: str = "") -> Extraction:
    return extract(content_type, filename, content)


def book(**more: str) -> bytes:
    return files.zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "book/a.opf": PACKAGE,
            "book/text/one 1.xhtml": "<html><body><p>Second page",
            "book/two.xhtml": "<html><head><title>no</title></head><body><h1>First page",
            "book/notes.xhtml": "aside",
            **more,
        }
    )


def with_password(content: bytes, *names: str) -> bytes:
    """The zip file with its members marked as encrypted, as far as they bear one of the names."""
    changed = bytearray(content)
    for name in names:
        start = content.find(name.encode())
        changed[start - 30 + 6] |= 1
        changed[content.rfind(name.encode()) - 46 + 8] |= 1
    return bytes(changed)


def nested(depth: int) -> bytes:
    content = files.zipped({"words.txt": "the words"})
    for number in range(depth):
        content = files.zipped({f"{number}.zip": content})
    return content


def document_with_chunk(name: str, chunk: bytes | str) -> bytes:
    body = PARAGRAPH.format("before") + '<w:altChunk r:id="c1"/>' + PARAGRAPH.format("after")
    relations = f'<Relationships><Relationship Id="c1" Target="{name}"/></Relationships>'
    return files.zipped(
        {
            "word/document.xml": f"<w:document {files.WORD} {files.RELATION}>{body}</w:document>",
            "word/_rels/document.xml.rels": relations,
            "word/part.html": chunk,
            "word/part.mht": chunk,
            "word/part.rtf": chunk,
            "word/part.docx": chunk,
        }
    )


def test_a_zip_file_gives_the_names_and_the_text_of_what_is_inside() -> None:
    content = files.zipped(
        {
            "folder/": "",
            "folder/notes.txt": "some notes",
            "sums.csv": "a,b\n1,2\n",
            "photo.jpg": b"\xff\xd8\xff" + bytes(50),
            "page.pdf": files.pdf("A page"),
        }
    )
    text = (
        "folder/notes.txt\nsums.csv\nphoto.jpg\npage.pdf\n\nfolder/notes.txt:\nsome notes\n\n"
        "sums.csv:\na\tb\n1\t2\n\npage.pdf:\nA page"
    )
    assert read(content, "a.zip", "application/zip") == Extraction("archive", text)


def test_a_zip_file_inside_another_is_opened_up_to_a_depth() -> None:
    assert (read(nested(2)).text or "").endswith("words.txt:\nthe words")
    assert (read(nested(40)).text or "").count(".zip") < 10


def test_pictures_inside_a_zip_file_are_not_read_letter_by_letter() -> None:
    found = extract("", "a.zip", files.zipped({"a.png": files.png("HELP")}), lambda picture: "HELP")
    assert found == Extraction("archive", "a.png")


def test_a_damaged_member_does_not_spoil_the_others() -> None:
    content = files.zipped({"a.pdf": b"%PDF-1.4 nothing", "b.txt": "words"})
    assert read(content) == Extraction("archive", "a.pdf\nb.txt\n\nb.txt:\nwords")


def test_a_zip_file_with_a_password_is_named_so() -> None:
    content = files.zipped({"a.txt": "words", "b.txt": "words"})
    assert read(with_password(content, "a.txt", "b.txt")) == Extraction("encrypted", None)


def test_of_a_zip_file_with_some_members_locked_the_others_are_read() -> None:
    content = with_password(files.zipped({"a.txt": "one", "b.txt": "two"}), "a.txt")
    assert read(content) == Extraction("archive", "a.txt\nb.txt\n\nb.txt:\ntwo")


def test_a_document_locked_member_by_member_is_named_so() -> None:
    content = with_password(files.docx(PARAGRAPH.format("x")), "word/document.xml")
    assert read(content) == Extraction("encrypted", None)


def test_a_manifest_with_a_document_type_loses_no_text() -> None:
    manifest = '<!DOCTYPE manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "M.dtd"><manifest/>'
    content = files.zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": "<d><p>All of it</p></d>",
            "META-INF/manifest.xml": manifest,
        }
    )
    assert extract("application/vnd.oasis.opendocument.text", "a.odt", content).text == "All of it"


def test_an_open_document_with_a_password_is_named_so() -> None:
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    content = files.zipped({"mimetype": "x", "content.xml": b"\x01\x02", "META-INF/manifest.xml": manifest})
    assert read(content) == Extraction("encrypted", None)


def test_files_inside_files_share_one_budget() -> None:
    bomb = files.zipped({f"{number}.txt": b" " * 1_000_000 for number in range(10)})
    budget = archive.UnpackingBudget(bytes_left=15_000_000)
    opener = extraction._Opener(None, budget=budget)
    _, pieces = opener.open("", "a.zip", files.zipped({f"{number}.zip": bomb for number in range(5)}))
    assert len("".join(pieces)) <= 15_000_000
    assert budget.bytes_left == 0


def test_very_many_files_inside_are_read_up_to_a_number() -> None:
    found = read(files.zipped({f"{number}.txt": f"words {number}" for number in range(900)}))
    assert (found.text or "").count(".txt:\n") == archive.MAX_FILES


def test_when_the_time_is_used_up_files_inside_are_named_only() -> None:
    opener = extraction._Opener(None, budget=archive.UnpackingBudget(ends_at=0))
    _, pieces = opener.open("", "a.zip", files.zipped({"a.txt": "words", "b.txt": "words"}))
    assert "".join(pieces) == "a.txt\nb.txt\n"


def test_members_of_one_name_and_names_of_paths_do_no_harm() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("../../etc/passwd", "/a.txt", "/a.txt", "x\u202egnp.exe\r\nb"):
            file.writestr(name, "words")
    found = read(buffer.getvalue())
    assert found.method == "archive"
    assert "\u202e" not in (found.text or "")


def test_a_zip_file_that_holds_itself_in_a_circle_ends() -> None:
    inner = files.zipped({"a.zip": b"PK\x03\x04" + bytes(100)})
    assert read(files.zipped({"a.zip": inner, "b.zip": inner})).method == "archive"


def test_a_book_gives_its_pages_in_reading_order() -> None:
    assert read(book(), "a.epub") == Extraction("office", "First page\n\nSecond page")


def test_a_book_without_pages_has_no_text() -> None:
    assert read(book(**{"book/a.opf": "<package/>"})) == Extraction("office", "")


def test_entities_of_a_book_are_not_expanded() -> None:
    package = '<!DOCTYPE x [<!ENTITY e "boom">]><package>&e;</package>'
    assert read(book(**{"book/a.opf": package})) == Extraction("failed", None)


@samples(
    ("more", "expected"),
    [("", Extraction("office", "All of the text")), ("&e;", Extraction("failed", None))],
)
def test_a_document_type_is_allowed_and_what_it_names_is_not_read(more: str, expected: Extraction) -> None:
    """OpenOffice writes one into the manifest. No entity is known."""
    manifest = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE manifest:manifest PUBLIC'
        ' "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd">\n'
        '<manifest:manifest xmlns:manifest="http://openoffice.org/2001/manifest">'
        '<manifest:file-entry manifest:full-path="content.xml"/></manifest:manifest>'
    )
    page = (
        '<!DOCTYPE office:document-content SYSTEM "file:///etc/hostname"><office:document-content'
        ' xmlns:office="office" xmlns:text="text"><text:p>All of the text</text:p>'
        f"{more}</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    content = files.zipped({"mimetype": kind, "content.xml": page, "META-INF/manifest.xml": manifest})
    assert read(content) == expected


@samples(
    ("name", "chunk", "text"),
    [
        ("part.html", "<p>From a page", "From a page"),
        ("part.mht", SAVED_PAGE, "From a saved page"),
        ("/word/part.rtf", b"{\\rtf1 From rich text}", "From rich text"),
        ("part.docx", files.docx(PARAGRAPH.format("From a document")), "From a document"),
        ("gone.html", "", ""),
    ],
)
def test_pieces_in_another_format_stand_where_the_document_puts_them(
    name: str, chunk: bytes | str, text: str
) -> None:
    found = read(document_with_chunk(name, chunk))
    assert found.method == "office"
    assert [line for line in (found.text or "").split("\n") if line] == [
        "before",
        *filter(None, [text]),
        "after",
    ]


def test_a_document_that_holds_itself_ends() -> None:
    content = document_with_chunk("part.html", "x")
    for _ in range(8):
        content = document_with_chunk("part.docx", content)
    assert (read(content).text or "").count("before") <= extraction.MAX_DEPTH + 1


def test_a_mail_gives_its_words_and_the_files_inside() -> None:
    text = (
        "From: ann@postroom.example\nSubject: Outer\n\nHello\n\na.csv:\na\tb\n\n"
        "Inner.eml:\nSubject: Inner\n\nDeep words"
    )
    found = read(MAIL, "a.eml", "message/rfc822")
    assert found.method == "text"
    assert [line for line in (found.text or "").split("\n") if ".eml" not in line] == [
        line for line in text.split("\n") if ".eml" not in line
    ]


def test_a_saved_page_gives_what_a_reader_sees() -> None:
    assert read(SAVED_PAGE, "a.mht") == Extraction("html", "From a saved page")


def test_a_tag_without_end_is_given_up() -> None:
    content = files.docx(PARAGRAPH.format("seen") + '<w:x a="' + "b" * 20_000_000 + '"/>')
    assert read(content) == Extraction("office", f"seen\n\n{UNREAD_REST}")


@given(st.sampled_from([nested(1), book(), document_with_chunk("part.html", "<p>x")]), st.data())
def test_any_flipped_bytes_end_in_a_text_or_a_reason(content: bytes, data: st.DataObject) -> None:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 5))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(changed))
    assert found.method in (REASONS if found.text is None else METHODS)
    assert len(found.text or "") <= MAX_WHOLE_CHARS


def attribute(number: int, value: bytes, level: int = 1) -> bytes:
    return struct.pack("<BII", level, number, len(value)) + value + struct.pack("<H", sum(value) & 0xFFFF)


def mapi(*properties: tuple[int, int, bytes]) -> bytes:
    """Properties of variable size: type, number, value."""
    raw = struct.pack("<I", len(properties))
    for kind, number, value in properties:
        raw += struct.pack("<HHII", kind, number, 1, len(value)) + value + bytes(-len(value) % 4)
    return raw


def winmail(*attributes: bytes) -> bytes:
    return b"\x78\x9f\x3e\x22\x01\x00" + b"".join(attributes)


def file_in_winmail(name: str, content: bytes) -> bytes:
    return b"".join(
        (
            attribute(0x00069002, bytes(14), 2),
            attribute(0x0006800F, content, 2),
            attribute(0x00018010, b"SHORT~1.TXT\0", 2),
            attribute(0x00069005, mapi((0x1F, 0x3707, f"{name}\0".encode("utf-16-le"))), 2),
        )
    )


WINMAIL = winmail(
    attribute(0x00069007, struct.pack("<II", 1252, 0)),
    attribute(0x0002800C, b"Here is the price list. Gr\xfc\xdfe\0"),
    file_in_winmail("Preisübersicht.csv", b"oak,400\r\n"),
    file_in_winmail("picture.bin", bytes(range(256))),
)


def test_winmail_names_its_files_and_gives_their_text_and_its_own() -> None:
    text = "Preisübersicht.csv\npicture.bin\n\nHere is the price list. Grüße\n\nPreisübersicht.csv:\noak\t400"
    assert read(WINMAIL, "winmail.dat", "application/ms-tnef") == Extraction("archive", text)


def test_a_message_inside_winmail_is_read_as_well() -> None:
    inside = bytes(16) + winmail(attribute(0x0002800C, b"Inner words\0"))
    outer = winmail(
        attribute(0x00069003, mapi((0x1E, 0x1000, b"Outer words\0"))),
        attribute(0x00069002, bytes(14), 2),
        attribute(0x00069005, mapi((0x1E, 0x3707, b"Inner\0"), (0x0D, 0x3701, inside)), 2),
    )
    assert read(outer).text == "Inner\n\nOuter words\n\nInner:\n\nInner words"


@given(place=st.integers(0, len(WINMAIL) - 1), byte=st.integers(0, 255))
def test_damaged_winmail_gives_an_answer(place: int, byte: int) -> None:
    for damaged in (WINMAIL[:place], WINMAIL[:place] + bytes([byte]) + WINMAIL[place + 1 :]):
        assert read(damaged, "winmail.dat", "application/ms-tnef").method in (*METHODS, *REASONS)

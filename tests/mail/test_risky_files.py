"""Attached programs, macros and scripts are signals, whatever a file is called and wherever it lies."""

import io
import random
import struct
import zipfile

from postroom_mail import understand
from postroom_mail.mime.parse import ParsedAttachment
from postroom_mail.screening.examine import Subject, examine
from postroom_mail.screening.risky_files import MAX_NAMES, findings, zip_names
from tests.inward.random_emails import emails
from tests.letters import letter_with_files
from tests.samples import samples

PROGRAM = b"MZ" + bytes(0x3A) + struct.pack("<I", 0x40) + b"PE\0\0" + bytes(200)
SHORTCUT = b"L\x00\x00\x00\x01\x14\x02\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00F" + bytes(60)
MACROS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "_VBA_PROJECT".encode("utf-16-le") + bytes(60)
DISK = bytes(0x8001) + b"CD001" + bytes(50)


def zipped(*names: str, is_locked: bool = False) -> bytes:
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    content = bytearray(packed.getvalue())
    if is_locked:
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def file(
    name: str, content: bytes = b"text", content_type: str = "application/octet-stream"
) -> ParsedAttachment:
    return ParsedAttachment(name, content_type, content, "", False)


@samples(
    ("attached", "rules"),
    [
        (file("invoice.pdf.exe"), {"runs_when_opened", "disguised_file"}),
        (file("invoice.pdf.exe. "), {"runs_when_opened", "disguised_file"}),
        (file("invoice.pdf       .scr"), {"runs_when_opened", "disguised_file"}),
        (file("invoice\u202efdp.exe"), {"runs_when_opened", "disguised_file"}),
        (file("INVOICE.JS"), {"runs_when_opened"}),
        (file("scan.lnk"), {"runs_when_opened"}),
        (file("scan.pdf", PROGRAM), {"runs_when_opened", "disguised_file"}),
        (file("scan.pdf", SHORTCUT), {"runs_when_opened", "disguised_file"}),
        (file("tool", b"\x7fELF" + bytes(60)), {"runs_when_opened"}),
        (
            file("files.zip", zipped("read me.txt", "a/invoice.pdf.js")),
            {"archived_program", "disguised_file"},
        ),
        (file("files.zip", zipped("disk.iso")), {"archived_program"}),
        (file("files.dat", DISK), {"archived_program"}),
        (file("files.img"), {"archived_program"}),
        (file("sheet.xlsm"), {"office_macros"}),
        (file("sheet.xlsx", zipped("xl/workbook.xml", "xl/vbaProject.bin")), {"office_macros"}),
        (file("letter.doc", MACROS), {"office_macros"}),
        (file("login.html", b"<html><SCRIPT src=x>"), {"active_content"}),
        (file("logo.svg", b"<svg onload = 'x()'/>"), {"active_content"}),
        (file("logo", b"<svg:script>", "image/svg+xml"), {"active_content"}),
        (file("docs.zip", zipped("plan.docx", is_locked=True)), {"locked_archive"}),
    ],
)
def test_a_file_that_can_run_is_a_signal(attached: ParsedAttachment, rules: set[str]) -> None:
    assert {rule for rule, _ in findings([attached])} == rules


@samples(
    "attached",
    [
        file("report.pdf", b"%PDF-1.7"),
        file("MZ.txt", b"MZ is how some programs begin"),
        file("photo.jpg", b"\xff\xd8\xff" + PROGRAM),
        file("v1.2.3.tar.gz", b"\x1f\x8b"),
        file("patch.diff", b"+<script>"),
        file("page.html", b"<html><p>Hello</p></html>"),
        file("logo.svg", b"<svg><path d='M0 0'/></svg>"),
        file("plan.docx", zipped("word/document.xml", "docProps/app.xml")),
        file("photos.zip", zipped("one.jpg", "two.jpg")),
        file("library.jar.txt", zipped("a/B.class")),
        file("mail.exe.txt"),
        file(""),
        file(".exe.pdf"),
    ],
)
def test_an_ordinary_file_is_none(attached: ParsedAttachment) -> None:
    assert list(findings([attached])) == []


def test_a_member_in_either_list_of_a_zip_is_found() -> None:
    """Some programs follow the list at the end, others the members themselves."""
    content = zipped("harmless.txt", "run.exe")
    end = content.index(b"PK\x01\x02")
    for hidden in (content[:end], content[end:], b"prefix" + content):
        assert "run.exe" in zip_names(hidden)[0]


def test_hostile_archives_are_read_in_part_and_never_raise() -> None:
    names, _ = zip_names(b"PK\x03\x04" * 500_000)
    assert len(names) <= MAX_NAMES
    generator, whole = random.Random(1), zipped("a.txt", "b.exe", is_locked=True)
    for _ in range(3_000):
        damaged = bytearray(whole)
        for _ in range(generator.randrange(1, 8)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        list(findings([file("a.zip", bytes(damaged[: generator.randrange(len(damaged))]))]))


def test_a_password_beside_a_locked_archive_makes_it_suspicious() -> None:
    locked = (file("docs.zip", zipped("plan.docx", is_locked=True)),)
    assert examine(Subject(body_text="Here is the plan.", files=locked)).verdict == "clean"
    for text in (
        "The password is 4711.",
        "Das Passwort lautet 4711.",
        "La contraseña es 4711",
        "密码是 4711",
    ):
        found = examine(Subject(body_text=text, files=locked))
        assert found.verdict == "suspicious", text
        assert [each.name for each in found.signals] == ["locked_archive", "password_beside"]


def test_a_disguised_program_is_malicious_for_the_library_and_says_its_name() -> None:
    found = understand(letter_with_files(("invoice.pdf.exe", "application/octet-stream", PROGRAM)))
    assert found.verdict == "malicious"
    assert {each.excerpt for each in found.signals} == {"invoice.pdf.exe"}


def test_random_emails_raise_nothing() -> None:
    for mail in emails(random.Random(7), 200):
        understand(mail)

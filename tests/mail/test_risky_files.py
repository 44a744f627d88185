"""Attached programs, macros and scripts are signals, whatever a file is called and wherever it lies."""

import gzip
import io
import random
import struct
import zipfile

from postroom_mail import understand
from postroom_mail.mime.parse import ParsedAttachment
from postroom_mail.screening.examine import Subject, examine
from postroom_mail.screening.inside_files import MAX_NAMES, MAX_UNPACKED_BYTES, MemberBudget, read_zip
from postroom_mail.screening.risky_files import findings
from tests.inward.random_emails import emails
from tests.raw_mails import raw_mail_with_files
from tests.samples import samples

PROGRAM = b"MZ" + bytes(0x3A) + struct.pack("<I", 0x40) + b"PE\0\0" + bytes(200)
SHORTCUT = b"L\x00\x00\x00\x01\x14\x02\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00F" + bytes(60)
MACROS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "_VBA_PROJECT".encode("utf-16-le") + bytes(60)
MACRO_SHEET = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    + "Workbook".encode("utf-16-le")
    + b"\x85\0\x0e\0\x7b\x0a\0\0\x02\x01\x06\0Macro1"
    + bytes(60)
)
NOTEBOOK = bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3") + bytes(900)
EMBEDDED = bytes.fromhex("e716e3bd65261145a4c48d4d0b7a9eac") + bytes(20)
TEMPLATE = (
    b'<Relationship Id="r1" Type="http://x.example/attachedTemplate"'
    b' Target="https://there.example/a.dotm" TargetMode="External"/>'
)
DISK = bytes(0x8001) + b"CD001" + bytes(50)


def zipped(*members: str | tuple[str, bytes], is_locked: bool = False) -> bytes:
    """With names, or with names and contents, which are compressed."""
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        for member in members:
            name, inner = (member, b"content") if isinstance(member, str) else member
            archive.writestr(name, inner, zipfile.ZIP_STORED if member == name else zipfile.ZIP_DEFLATED)
    content = bytearray(packed.getvalue())
    if is_locked:
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def rar_5(name: bytes, extra: bytes = b"") -> bytes:
    head = b"\x02\x03" + bytes([len(extra), 4]) if extra else b"\x02\x02\x04"
    body = head + b"\0\x04\x20\0\0" + bytes([len(name)]) + name + extra
    main = b"\x01\0\0"
    blocks = [bytes(4) + bytes([len(each)]) + each for each in (main, body)]
    return b"Rar!\x1a\x07\x01\0" + blocks[0] + blocks[1] + b"text" + bytes(4)


def rar_4(name: bytes, flags: int = 0x8000) -> bytes:
    main = struct.pack("<HBHH", 0, 0x73, 0, 13) + bytes(6)
    fields = struct.pack("<IIBIIBBHI", 4, 4, 2, 0, 0, 29, 0x30, len(name), 0x20)
    head = struct.pack("<HBHH", 0, 0x74, flags, 7 + len(fields) + len(name))
    return b"Rar!\x1a\x07\0" + main + head + fields + name + b"text"


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
        (file("a.zip", zipped(("b.zip", zipped(("c.zip", zipped("run.exe")))))), {"archived_program"}),
        (file("a.zip", zipped(("scan.pdf", PROGRAM))), {"archived_program", "disguised_file"}),
        (file("a.zip", zipped(("tool", SHORTCUT))), {"archived_program"}),
        (file("a.zip", zipped(("disk", DISK))), {"archived_program"}),
        (file("a.zip", zipped(("letter.doc", MACROS))), {"office_macros"}),
        (file("a.zip", zipped(("sheet.xlsx", zipped("xl/vbaProject.bin")))), {"office_macros"}),
        (file("a.zip", zipped(("login.html", b"<script>x()</script>"))), {"active_content"}),
        (file("a.zip", zipped(("b.zip", zipped("plan.docx", is_locked=True)))), {"locked_archive"}),
        (file("scan.pdf.gz", gzip.compress(PROGRAM)), {"archived_program"}),
        (file("disk.vhdx", b"vhdxfile"), {"archived_program"}),
        (file("files", b"MSCF" + bytes(60)), {"archived_program"}),
        (file("sheet.xls", MACRO_SHEET), {"office_macros"}),
        (file("sheet.ods", zipped("Basic/script-lc.xml")), {"office_macros"}),
        (file("a.docx", zipped(("word/_rels/settings.xml.rels", TEMPLATE))), {"office_macros"}),
        (file("letter.doc", b"{\\rtf1{\\object\\objdata 50616 36b\n616765}}"), {"office_macros"}),
        (file("letter.rtf", b"{\\rtf1{\\object\\objautlink\\objupdate}}"), {"office_macros"}),
        (file("notes.one", NOTEBOOK + EMBEDDED + PROGRAM), {"archived_program"}),
        (file("bill.pdf", b"%PDF-1.4 <</S /Launch /F (cmd.exe)>>"), {"active_content"}),
        (
            file("go.html", b'<meta http-equiv="Refresh" content="0;url=https://x.example">'),
            {"active_content"},
        ),
        (file("a.rar", rar_5(b"invoice.exe")), {"archived_program"}),
        (file("a.rar", rar_4(b"invoice.exe")), {"archived_program"}),
        (file("a.rar", rar_5(b"plan.docx", extra=b"\x02\x01\x00")), {"locked_archive"}),
        (file("a.rar", rar_4(b"plan.docx", flags=0x8004)), {"locked_archive"}),
        (file("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(60) + b"\x24\x06\xf1\x07\x01"), {"locked_archive"}),
        (
            file("fwd", raw_mail_with_files(("a.exe", "image/png", PROGRAM)), "message/rfc822"),
            {"runs_when_opened"},
        ),
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
        file(
            "photos.zip",
            zipped(("more.zip", zipped(("one.jpg", b"\xff\xd8\xff"))), ("page.html", b"<p>Hello</p>")),
        ),
        file("site.zip", zipped(*((f"page{n}.html", b"<script src=x>") for n in range(20)))),
        file("log.gz", gzip.compress(b"a line\n" * 50)),
        file("sheet.xls", MACROS[:8] + "Workbook".encode("utf-16-le") + bytes(500)),
        file("a.docx", zipped(("word/_rels/settings.xml.rels", TEMPLATE.replace(b"https", b"file")))),
        file("letter.rtf", b"{\\rtf1 Hello {\\pict ffd8}}"),
        file("notes.one", NOTEBOOK + EMBEDDED + b"\x89PNG"),
        file("a.rar", rar_5(b"invoice.txt")),
        file("fwd.eml", raw_mail_with_files(("a.png", "image/png", b"\x89PNG")), "message/rfc822"),
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
        assert "run.exe" in read_zip(hidden, MemberBudget()).names


def test_hostile_archives_are_read_in_part_and_never_raise() -> None:
    names = read_zip(b"PK\x03\x04" * 500_000, MemberBudget()).names
    assert len(names) <= MAX_NAMES
    generator = random.Random(1)
    nested = zipped("a.txt", "b.exe", ("c.zip", zipped("d.exe")), is_locked=True)
    for whole in (nested, rar_5(b"a.exe", b"\x02\x01\0"), rar_4(b"a.exe"), NOTEBOOK + EMBEDDED + PROGRAM):
        for _ in range(1_000):
            damaged = bytearray(whole)
            for _ in range(generator.randrange(1, 8)):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            list(findings([file("a.zip", bytes(damaged[: generator.randrange(len(damaged))]))]))


def test_archives_that_unpack_to_much_share_a_budget() -> None:
    bomb = zipped(*((f"{number}", bytes(4_000_000)) for number in range(20)))
    deep = zipped(("a.zip", zipped(("b.zip", zipped(("c.zip", zipped(("d.zip", zipped("run.exe")))))))))
    budget = MemberBudget()
    assert sum(len(content) for _, content in read_zip(bomb * 3, budget).files) <= MAX_UNPACKED_BYTES
    assert budget.unpacked >= 0
    assert list(findings([file("a.zip", deep), file("b.zip", bomb)])) == [], "not that deep"


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
    found = understand(raw_mail_with_files(("invoice.pdf.exe", "application/octet-stream", PROGRAM)))
    assert found.verdict == "malicious"
    assert {each.excerpt for each in found.signals} == {"invoice.pdf.exe"}


def test_random_emails_raise_nothing() -> None:
    for mail in emails(random.Random(7), 200):
        understand(mail)

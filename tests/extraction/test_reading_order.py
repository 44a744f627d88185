"""Words of PDF pages come as they are read: columns one after another, vertical lines from right to left."""

from pathlib import Path

from postroom_mail.files.extract import extract
from tests.extraction.pdf_files import at, cid_font, document, to_unicode
from tests.samples import samples

LEFT = ["The left column begins here and", "goes on for a few lines of text", "until it ends with this word."]
MIDDLE = [
    "What stands between the columns",
    "is a column with its own words,",
    "and it comes second of three.",
]
RIGHT = ["The right column has its words", "beside those of the left one,", "and they come after all of it."]
UPPER = ["日本語の文章は縦に書かれ", "右から左へと読むものです", "ここまでが上の段の言葉で"]
LOWER = ["下の段はその後に続くので", "上の段より先に読まれては", "意味がわからなくなります"]
CODES = {letter: 65 + n for n, letter in enumerate(sorted(set("".join(UPPER + LOWER) + "見出し")))}


def read(drawing: bytes, **entries: object) -> str:
    text = extract("application/pdf", "a.pdf", document(b"", drawing=drawing, **entries)).text  # type: ignore[arg-type]
    assert text is not None
    return text


def plain(text: str) -> bytes:
    return f"({text})".encode()


def vertical(drawing: bytes) -> str:
    """In a font whose letters stand below each other. They look like Latin ones, and mean Japanese."""
    font = cid_font("UniJIS-UCS2-V", "Japan1", "/ToUnicode 6 0 R")
    return read(drawing, font=font, more=(to_unicode({code: letter for letter, code in CODES.items()}),))


def japanese(text: str) -> bytes:
    return b"<%s>" % "".join(f"{CODES[letter]:04x}" for letter in text).encode()


def across(*columns: list[str], first: int = 700) -> bytes:
    """Line by line over all columns, as some programs write."""
    width = 540 // len(columns)
    return b"".join(
        at(40 + width * number, first - 14 * line, plain(words))
        for line, row in enumerate(zip(*columns, strict=True))
        for number, words in enumerate(row)
    )


@samples("columns", [[LEFT, RIGHT], [LEFT, MIDDLE, RIGHT]])
def test_columns_written_across_are_read_one_after_another(columns: list[list[str]]) -> None:
    assert read(across(*columns)) == "\n".join(line for column in columns for line in column)


def test_columns_keep_their_place_between_a_title_and_a_foot() -> None:
    title = at(40, 740, plain("A title that goes over the whole width of the page, over both of its columns"))
    foot = at(
        40, 600, plain("And a foot that goes over the whole width of the page, below both columns of it")
    )
    lines = read(title + across(LEFT, RIGHT) + foot).split("\n")
    assert [line for line in lines[1:-1] if line] == LEFT + RIGHT
    assert lines[0].startswith("A title")
    assert lines[-1].startswith("And a foot")


def test_columns_that_already_follow_each_other_stay() -> None:
    drawing = b"".join(
        at(left, 700 - 14 * line, plain(words))
        for left, column in ((40, LEFT), (310, RIGHT))
        for line, words in enumerate(column)
    )
    assert read(drawing) == "\n".join(LEFT + RIGHT)


def test_rows_of_a_table_stay_together() -> None:
    rows = [["Desk of oak", "2", "800.00 EUR"], ["Chair", "4", "1,200.00 EUR"], ["Lamp", "1", "99.00 EUR"]]
    drawing = b"".join(
        at(left, 700 - 14 * line, plain(cell))
        for line, row in enumerate(rows)
        for left, cell in zip((40, 300, 420), row, strict=True)
    )
    assert read(drawing).split() == " ".join(cell for row in rows for cell in row).split()


def test_names_beside_long_values_stay_with_them() -> None:
    values = [
        "Example Limited, 7 Long Street",
        "An order of forty oaken desks",
        "Within thirty days, by transfer",
    ]
    drawing = across(["Company", "Subject", "Payment"], values)
    joined = [
        f"{name} {value}" for name, value in zip(["Company", "Subject", "Payment"], values, strict=True)
    ]
    assert read(drawing).split() == " ".join(joined).split()


@samples("step", [1, -1])
def test_vertical_lines_go_from_right_to_left(step: int) -> None:
    lines = [at(500 - 20 * number, 700, japanese(line)) for number, line in enumerate(UPPER)]
    assert vertical(b"".join(lines[::step])) == "\n".join(UPPER)


def test_the_upper_row_of_vertical_lines_comes_before_the_lower() -> None:
    drawing = b"".join(
        at(500 - 20 * number, top, japanese(line))
        for number, pair in enumerate(zip(UPPER, LOWER, strict=True))
        for top, line in zip((700, 500), pair, strict=True)
    )
    assert vertical(drawing) == "\n".join(UPPER + LOWER)


def test_letters_on_top_of_each_other_cost_no_more_than_their_number() -> None:
    heap = b"".join(at(40 + number % 7, 700 + number % 5, plain(f"word{number}")) for number in range(2_000))
    assert "word1999" in read(heap)


@samples(
    ("encoding", "ordering", "text"),
    [
        ("UniJIS-UCS2-V", "Japan1", UPPER[0]),
        ("UniGB-UCS2-V", "GB1", "中文文章的内容很长"),
        ("UniCNS-UCS2-V", "CNS1", "繁體中文文章"),
        ("UniKS-UCS2-V", "Korea1", "한국어문장"),
    ],
)
def test_vertical_lines_in_a_font_that_neither_file_nor_machine_has_are_read(
    encoding: str, ordering: str, text: str
) -> None:
    shown = b"<%s>" % text.encode("utf-16-be").hex().encode()
    assert read(at(500, 700, shown), font=cid_font(encoding, ordering)) == text


def test_the_fonts_of_the_machine_change_nothing() -> None:
    """The gaps between the cells are so narrow that wider letters close them."""
    cells = ((40 + 70 * column, 700 - 14 * row) for row in range(4) for column in range(4))
    drawing = b"".join(at(left, bottom, plain("Word 0 and more")) for left, bottom in cells)
    installed = sorted(path.stem for path in Path("/usr/share/fonts").rglob("*.ttf"))[:40]
    without = read(drawing, font=named("Never-Installed"))
    assert {name: read(drawing, font=named(name)) for name in installed} == dict.fromkeys(installed, without)


def named(font: str) -> bytes:
    """A font that the file names and does not contain."""
    return f"<< /Type /Font /Subtype /TrueType /BaseFont /{font} /Encoding /WinAnsiEncoding >>".encode()

"""format=flowed (RFC 3676): lines that a sender wrapped become paragraphs again."""

MAX_LINES = 200_000


def unwrap(text: str, deletes_space: bool) -> str:
    """Join flowed lines while their quote depth stays the same. Lines of the text end in LF."""
    if text.count("\n") > MAX_LINES:
        return text
    paragraphs: list[str] = []
    pieces: list[str] = []
    open_depth = -1
    for line in text.split("\n"):
        depth, content = _read_line(line)
        if pieces and (depth != open_depth or content == "-- "):
            paragraphs.append(_written(open_depth, pieces))
            pieces = []
        is_flowed = content.endswith(" ") and content != "-- "
        pieces.append(content[:-1] if is_flowed and deletes_space else content)
        open_depth = depth
        if not is_flowed:
            paragraphs.append(_written(depth, pieces))
            pieces = []
    if pieces:
        paragraphs.append(_written(open_depth, pieces))
    return "\n".join(paragraphs)


def _read_line(line: str) -> tuple[int, str]:
    """Quote depth and content, without quote marks and space-stuffing (sections 4.4 and 4.5)."""
    content = line.lstrip(">")
    return len(line) - len(content), content.removeprefix(" ")


def _written(depth: int, pieces: list[str]) -> str:
    text = "".join(pieces)
    return f"{'>' * depth} {text}" if depth else text

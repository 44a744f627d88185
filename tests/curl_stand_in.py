"""The little of curl that the documents use, for machines without it; the standard library starts fast."""

import argparse
import secrets
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        with urlopen(to_request(options), timeout=60) as answer:
            sys.stdout.buffer.write(answer.read())
    except HTTPError as error:
        if options.fail:
            sys.exit(f"curl: (22) The requested URL returned error: {error.code}")
        sys.stdout.buffer.write(error.read())


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("s", "S"):
        parser.add_argument(f"-{flag}", action="store_true")
    parser.add_argument("-f", dest="fail", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("-F", dest="parts", action="append", default=[])
    parser.add_argument("url")
    return parser.parse_args(arguments)


def to_request(options: argparse.Namespace) -> Request:
    headers = dict(header.split(": ", 1) for header in options.headers)
    content = None if options.body is None else options.body.encode()
    if options.parts:
        boundary = secrets.token_hex(16)
        headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
        content = to_form(boundary, [part.split("=", 1) for part in options.parts])
    return Request(options.url, content, headers, method=options.method)


def to_form(boundary: str, parts: list[list[str]]) -> bytes:
    written = []
    for name, value in parts:
        path = Path(value[1:]) if value.startswith("@") else None
        filename = "" if path is None else f'; filename="{path.name}"'
        content = value.encode() if path is None else path.read_bytes()
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'
        written.append(head.encode() + content + b"\r\n")
    return b"".join([*written, f"--{boundary}--\r\n".encode()])


if __name__ == "__main__":
    main()

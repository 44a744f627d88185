"""Emails of public R lists for the origin guard: `python -m tests.outward.list_emails FOLDER FILE …`.

Each FILE is one of `data/messages/*.parquet` of https://github.com/r-mailing-lists/data, no part of the
project. It needs `pyarrow`, which is none of the project's packages. FOLDER gets a folder for each year, with
one email a file, without what the archive wrote into it. A person gets an address of their own, by the hash
that stands for it there.
"""

import re
import sys
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from tests.raw_mails import raw_mail

OF_THE_ARCHIVE = re.compile(r"(?:An HTML attachment|A non-text attachment) was scrubbed\.\.\.\n(?:.*: .*\n)*")


def write(folder: Path, row: dict[str, Any]) -> None:
    date: datetime = row["date"]
    name = row["from_name"].replace('"', "")
    headers = {
        "from": f'"{name}" <author@{row["from_email_hash"][:12]}.example>',
        "to": f"{row['list']}@r-project.org",
        "subject": " ".join(row["subject"].split()),
        "message_id": row["message_id"],
        "in_reply_to": row["in_reply_to"],
        "date": format_datetime(date),
    }
    raw = raw_mail(
        OF_THE_ARCHIVE.sub("", f"{row['body']}\n"),
        **{name: value for name, value in headers.items() if value},
    )
    year = folder / str(date.year)
    year.mkdir(parents=True, exist_ok=True)
    (year / row["id"]).write_bytes(raw)


def convert(folder: Path, files: list[str]) -> int:
    from pyarrow import parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    for row in rows:
        write(folder, row)
    return len(rows)


if __name__ == "__main__":
    print(f"{convert(Path(sys.argv[1]), sys.argv[2:])} emails")

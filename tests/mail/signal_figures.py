"""How many emails of public collections look suspicious: `python -m tests.mail.signal_figures FOLDER […]`.

Each folder has emails, one a file. Judged is the half that `tools/junk_start.py` would not learn: rules and
weights are never tuned on it. Only the email itself is judged: no correspondents, no DMARC, no DNS. No test
needs a collection, and none is part of the project.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from postroom_mail.html.page import read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.model import Model
from postroom_mail.mime.parse import parse_mail
from postroom_mail.screening.examine import Subject, examine
from tests.mail.junk_figures import THRESHOLD, part

MOST_SIGNALS = 12


def report(folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        yield from of_folder(Path(folder))


def of_folder(folder: Path) -> Iterator[str]:
    found: Counter[str] = Counter()
    signals: Counter[str] = Counter()
    judge = Model(model.load_start()).score_email
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if hashlib.sha256(path.name.encode()).digest()[0] % 2 == 0:
            continue
        raw = path.read_bytes()
        mail = parse_mail(raw)
        page = read_page(mail.body_html)
        findings = examine(
            Subject(
                from_addr=mail.from_addr,
                subject=mail.subject,
                body_text=mail.body_text or page.text,
                body_html=mail.body_html,
                page=page,
                attachment_names=tuple(each.filename for each in mail.attachments),
                files=tuple(mail.attachments),
                reply_to=mail.reply_to,
            )
        )
        is_flagged = findings.verdict != "clean"
        is_junk = judge(features.read_features(raw, mail, page)) >= THRESHOLD
        found.update(
            {
                "emails": 1,
                "suspicious": is_flagged,
                "malicious": findings.verdict == "malicious",
                "junk": is_junk,
                "suspicious or junk": is_flagged or is_junk,
            }
        )
        signals.update(each.name for each in findings.signals)
    yield f"{folder.name}: " + ", ".join(
        f"{name} {part(found[name], found['emails'])}" for name in found if name != "emails"
    )
    yield "  " + ", ".join(f"{name} {count}" for name, count in signals.most_common(MOST_SIGNALS))


if __name__ == "__main__":
    for line in report(sys.argv[1:]):
        print(line, flush=True)

"""Bounces in the forms of many servers and languages are read right, and nothing else is read as one."""

import csv
from pathlib import Path

from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.bounce import may_be_report, read_report, read_returned
from postroom_mail.reports.reasons import Fault
from postroom_mail.reports.report import RecipientReport, Report
from tests.mail.soundness import SAMPLES
from tests.samples import samples

FOLDER = SAMPLES / "bounces"
Facts = dict[str, str]


def facts_in(name: str) -> list[Facts]:
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


REPORTS = facts_in("bounces.tsv")
OTHERS = facts_in("others.tsv")


def raw_of(folder: str, facts: Facts) -> bytes:
    return (FOLDER / folder / f"{facts['name']}.eml").read_bytes()


def judgement(recipient: RecipientReport) -> str:
    hardness = "hard" if recipient.is_hard else "soft"
    return f"{hardness} address" if recipient.fault is Fault.RECIPIENT else hardness


def told(report: Report) -> Facts:
    judged = [] if report.kind == "complaint" else [judgement(each) for each in report.recipients]
    return {
        "kind": report.kind,
        "recipients": ",".join(each.final_recipient for each in report.recipients),
        "status": ",".join(each.status for each in report.recipients),
        "judged": ",".join(judged),
    }


@samples("facts", REPORTS)
def test_a_report_tells_what_it_says(facts: Facts) -> None:
    report = read_report(raw_of("bounces", facts))
    assert report is not None
    assert told(report) == {name: facts[name] for name in ("kind", "recipients", "status", "judged")}
    assert report.original_message_id == f"<{facts['name'].replace('_', '-')}@postroom.example>"
    assert all(each.last_word for each in report.recipients if report.kind != "complaint")


@samples("facts", REPORTS)
def test_a_report_to_the_return_path_says_the_same(facts: Facts) -> None:
    raw = raw_of("bounces", facts)
    assert read_returned(raw) == read_report(raw)


@samples("facts", REPORTS)
def test_the_header_of_a_report_is_reason_to_look(facts: Facts) -> None:
    raw = raw_of("bounces", facts)
    mail_from = "" if b"\nReturn-Path: <>" in raw.partition(b"\r\n\r\n")[0] else "someone@there.example"
    assert may_be_report(parse_mail(raw), mail_from)


def test_the_header_of_a_letter_is_no_reason_to_look() -> None:
    letters = [(SAMPLES / f"{name}.eml").read_bytes() for name in ("plain_ascii", "html_only", "mixed_pdf")]
    assert not any(may_be_report(parse_mail(raw), "ann@there.example") for raw in letters)


@samples("facts", OTHERS)
def test_what_is_no_report_is_not_read_as_one(facts: Facts) -> None:
    """Those judged `null` come with the empty envelope sender too, as automatic answers do."""
    raw = raw_of("others", facts)
    assert read_report(raw) is None
    assert read_report(raw, "someone@there.example") is None
    if facts["judged"] == "null":
        assert read_report(raw, "") is None
    if facts["kind"] != "none":
        assert read_returned(raw).kind == facts["kind"]


def test_the_tables_name_every_sample_and_hold_many_forms() -> None:
    for folder, table in (("bounces", REPORTS), ("others", OTHERS)):
        files = {Path(path).stem for path in (FOLDER / folder).glob("*.eml")}
        assert files == {facts["name"] for facts in table}
    bounces = [facts for facts in REPORTS if facts["kind"] == "bounce"]
    assert len(bounces) >= 150
    assert len({facts["form"] for facts in bounces}) >= 40
    assert len({facts["language"] for facts in bounces}) >= 15
    assert len(OTHERS) >= 60

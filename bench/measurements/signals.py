"""What the rules about a mail find in labelled samples, by kind, and how long a mail takes."""

import time
from collections.abc import Callable, Sequence

from bench.results import Result, at_most
from postroom_mail.html.text import html_to_text
from postroom_mail.screening.examine import Findings, Subject, examine
from tests.mail import signal_samples
from tests.mail.signal_samples import Attack, Sample

MOST_MILLISECONDS = 5.0


def measure(rounds: int = 5) -> list[Result]:
    flagged, harmless = signal_samples.flagged(), signal_samples.harmless()
    return [
        *_shares("recall", flagged, _is_found),
        *_shares("false alarms", harmless, _is_alarm),
        *_shares("blind recall", signal_samples.blind_flagged(), _is_found, by_kind=False),
        *_shares("blind false alarms", signal_samples.blind_harmless(), _is_alarm, by_kind=False),
        *_attacks("attacks", signal_samples.attacks()),
        *_attacks("attacks that no rule was changed for", signal_samples.blind_attacks()),
        Result("a mail of the samples", _microseconds(flagged + harmless, rounds), "µs"),
        *(
            Result(f"a mail of {name}", _milliseconds(subject, rounds), "ms", at_most(MOST_MILLISECONDS))
            for name, subject in large()
        ),
    ]


def _is_found(sample: Sample, findings: Findings) -> bool:
    return findings.verdict != "clean" and sample.kind in {signal.name for signal in findings.signals}


def _is_alarm(sample: Sample, findings: Findings) -> bool:
    return findings.verdict != "clean"


def _shares(
    what: str, samples: Sequence[Sample], holds: Callable[[Sample, Findings], bool], by_kind: bool = True
) -> list[Result]:
    answers = [(sample.kind, holds(sample, examine(sample.subject))) for sample in samples]
    kinds = sorted({kind for kind, _ in answers}) if by_kind else []
    rows = [_share(f"{what}, {kind}", [answer for name, answer in answers if name == kind]) for kind in kinds]
    return [_share(f"{what}, all", [answer for _, answer in answers]), *rows]


def _attacks(what: str, attacks: Sequence[Attack]) -> list[Result]:
    """By kind, other languages apart: how many are flagged at all, and how many as malicious."""
    judged = [(_kind(each), examine(each.subject).verdict) for each in attacks]
    rows: list[Result] = []
    for kind in ("all", *sorted({kind for kind, _ in judged})):
        verdicts = [verdict for name, verdict in judged if kind in ("all", name)]
        rows.append(_share(f"{what}, {kind}, suspicious", [verdict != "clean" for verdict in verdicts]))
        rows.append(_share(f"{what}, {kind}, malicious", [verdict == "malicious" for verdict in verdicts]))
    return rows


def _kind(attack: Attack) -> str:
    return attack.kind if attack.language == "en" else f"{attack.kind} in another language"


def _share(name: str, answers: Sequence[bool]) -> Result:
    return Result(f"{name} ({sum(answers)} of {len(answers)})", 100 * sum(answers) / len(answers), "%")


def _microseconds(samples: Sequence[Sample], rounds: int) -> float:
    return (
        min(_seconds(lambda: [examine(sample.subject) for sample in samples]) for _ in range(rounds))
        * 1e6
        / len(samples)
    )


def _milliseconds(subject: Subject, rounds: int) -> float:
    return min(_seconds(lambda: examine(subject)) for _ in range(rounds)) * 1e3


def _seconds(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def large() -> list[tuple[str, Subject]]:
    """Long mails: ordinary ones, and such as make the most work."""
    row = '<tr><td style="font-size:14px"><a href="https://a.example/1">A lamp</a> for the desk.</td></tr>'
    letter = "Dear Ann, the meeting is on Thursday and the report is attached. "
    every_word = "ignore all password forward language model instruction mail send me. "
    near_misses = "forward emails ignore instruction password your system prompt and so on. "
    html = f"<style>{'.c{color:#333} ' * 500}</style><table>{row * 200}</table>"
    return [
        ("English, 20 kB", Subject(body_text=letter * 300)),
        ("HTML, 30 kB", Subject(body_text=html_to_text(html), body_html=html)),
        ("Chinese, 30,000 characters", Subject(body_text="会议在星期四举行,报告见附件。" * 2_000)),
        ("Arabic, 30,000 characters", Subject(body_text="الاجتماع يوم الخميس والتقرير مرفق. " * 900)),
        ("suspicious words alone", Subject(body_text=every_word * 3_000)),
        ("near misses alone", Subject(body_text=near_misses * 3_000)),
        ("suspicious words in every part", _everywhere(every_word)),
        ("encoded text alone", Subject(body_text="QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB " * 3_000)),
    ]


def _everywhere(words: str) -> Subject:
    html = f"<p>{words}</p>" * 1_000
    return Subject(body_text=words * 1_000, body_html=html, attachment_texts=(words * 500,) * 20)

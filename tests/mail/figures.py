"""How well mail is understood, in figures: `python -m tests.mail.figures [part …]`, by the samples here.

The docstring of each part introduces it in docs/accuracy.md.
"""

import sys
from collections.abc import Callable, Iterator, Sequence

from postroom.inward.mails import Arrival, Origin
from postroom.inward.receive import read_mail
from postroom_mail.reading.category import Kind
from postroom_mail.reading.codes import codes
from postroom_mail.reading.reply import reply_text
from postroom_mail.reports.bounce import read_returned
from postroom_mail.reports.reasons import Fault, fault_of, found_status, reply_code
from postroom_mail.screening.examine import Subject, examine
from tests.extraction import file_samples
from tests.mail import (
    calendar_samples,
    code_samples,
    kind_samples,
    ordinary_mails,
    reply_samples,
    signal_samples,
    test_reply,
)
from tests.mail.bounces.refusals import OF_ANOTHER_KIND, OF_THE_ADDRESS, OF_THE_SENDER, REPLIES, UNCLEAR
from tests.mail.bounces.test_samples import REPORTS, raw_of
from tests.mail.kind_samples import KindSample
from tests.mail.signal_samples import Attack
from tests.mailbox.conversations import recall

LIST_FIELDS = (
    b"List-Id: <all.there.example>\r\nList-Unsubscribe: <mailto:x@there.example>\r\nPrecedence: list\r\n"
)


def part(found: int, of: int) -> str:
    return f"{found} of {of} ({found / of:.1%})"


def suppressions() -> Iterator[str]:
    """Refusals and bounces, in the words of real servers: which addresses they suppress."""
    judged = [(fault_of(*reason), Fault.RECIPIENT) for reason in OF_THE_ADDRESS]
    judged += [(fault_of(*reason), Fault.OTHER) for reason in (*OF_ANOTHER_KIND, *OF_THE_SENDER)]
    judged += [(fault_of(*reason), Fault.UNCLEAR) for reason in UNCLEAR]
    for reply, judgement in REPLIES:
        fault = fault_of(reply_code(reply), found_status(reply) or None, reply)
        judged.append((fault, Fault.RECIPIENT if judgement == "address" else Fault.OTHER))
    suppressed = [wanted for fault, wanted in judged if fault is Fault.RECIPIENT]
    wrong = sum(wanted is not Fault.RECIPIENT for wanted in suppressed)
    missed = sum(wanted is Fault.RECIPIENT and fault is not Fault.RECIPIENT for fault, wanted in judged)
    yield f"refusals {len(judged)}, suppressions {len(suppressed)}, wrong {wrong}, missed {missed}"
    bounces = [facts for facts in REPORTS if facts["kind"] == "bounce"]
    read = 0
    for facts in bounces:
        report = read_returned(raw_of("bounces", facts))
        named = ",".join(each.final_recipient for each in report.recipients)
        read += report.kind == "bounce" and named == facts["recipients"]
    yield f"bounces at the return path: {part(read, len(bounces))} with every recipient"
    heeded = sum(read_returned(LIST_FIELDS + raw_of("bounces", facts)).kind == "bounce" for facts in bounces)
    yield f"the same with the fields of a list: {part(heeded, len(bounces))} read as bounces"


def codes_found() -> Iterator[str]:
    """One-time codes in the emails of products, and numbers in ordinary email that are none."""
    letters = [each for found in code_samples.LETTERS.values() for each in found]
    found = sum(codes(text) == (code,) for text, code in letters)
    yield f"letters of {len(code_samples.LETTERS)} languages: {part(found, len(letters))}"
    unseen = [each for found in code_samples.UNSEEN.values() for each in found]
    found = sum(codes(text) == (code,) for text, code in unseen)
    yield f"sentences written afterwards: {part(found, len(unseen))}"
    found = sum(codes(text) == (code,) for text, code in code_samples.ALL)
    yield f"sentences and forms: {part(found, len(code_samples.ALL))}"
    mails = list(ordinary_mails.copies(40, seed=20261115))
    yield f"ordinary mail that gives a code: {part(sum(map(bool, map(codes, mails))), len(mails))}"


def kinds() -> Iterator[str]:
    """Personal, automated, marketing or bounce: emails of ten kinds whose header fields say nothing."""
    judged = [(sample, kind_of(sample)) for sample in kind_samples.read_all()]
    for is_held_out in (False, True):
        half = [
            kind.category == sample.category for sample, kind in judged if sample.is_held_out is is_held_out
        ]
        yield f"{'not looked at' if is_held_out else 'looked at'}: {part(sum(half), len(half))} right"
    wrong = [sample for sample, kind in judged if sample.category != "personal" and kind.auto_replyable]
    yield f"machines that a program may answer: {len(wrong)}"


def kind_of(sample: KindSample) -> Kind:
    return read_mail(arrived(sample.raw())).kind


def arrived(raw: bytes) -> Arrival:
    return Arrival(Origin((), trace=b"", peer_ip="", helo="there.example", mail_from="x@there.example"), raw)


def signals() -> Iterator[str]:
    """Attacks by kind, and harmless email. `suspicious` includes `malicious`. One person wrote them."""
    attacks, blind = signal_samples.attacks(), signal_samples.blind_attacks()
    unlike = signal_samples.attacks_in_other_words()
    yield f"attacks, looked at: {verdicts([each for each in attacks if not each.is_held_out])}"
    yield f"attacks, kept from tuning: {verdicts([each for each in attacks if each.is_held_out])}"
    yield f"attacks in plain words, written last: {verdicts(blind)}"
    yield f"attacks in other words, looked at: {verdicts([each for each in unlike if not each.is_held_out])}"
    kept = [each for each in unlike if each.is_held_out]
    yield f"attacks in other words, kept from tuning: {verdicts(kept)}"
    for kind in sorted({each.kind for each in attacks}):
        yield f"{kind}, kept from tuning: {verdicts([each for each in kept if each.kind == kind])}"
    harmless = [each.subject for each in signal_samples.harmless() + signal_samples.blind_harmless()]
    harmless += [Subject(body_text=mail) for mail in ordinary_mails.copies(3, seed=5)]
    harmless += [Subject(subject=each.subject, body_text=each.body) for each in kind_samples.read_all()]
    alarms = sum(examine(subject).verdict != "clean" for subject in harmless)
    yield f"harmless mail that is flagged: {part(alarms, len(harmless))}"


def replies() -> Iterator[str]:
    """The new words above, between and behind what is quoted, in 30 languages."""
    new = "Yes, please."
    quoted = [(f"{new}\n\n{head}\n\n> old\n>> oldest\n", new) for head in test_reply.ALL_HEADS]
    quoted += [(f"{new}\n\n{head}\nold text\n", new) for head in test_reply.ALL_HEADS]
    quoted += [(f"{new}\n\n{cut}\n", new) for cut in test_reply.CUTS]
    for name, bodies in (("quotes and footers", quoted), ("heads in odd places", test_reply.ODD_HEADS)):
        found = [(reply_text(body), wanted) for body, wanted in bodies]
        yield f"{name}: {part(sum(text == wanted for text, wanted in found), len(found))} right"
        empty = sum(bool(wanted) and not text for text, wanted in found)
        yield f"{name}, empty though there are new words: {empty}"
    whole = [*reply_samples.WHOLE, *reply_samples.FORWARDS]
    kept = sum(reply_text(body) == body for body in whole)
    yield f"letters and forwards kept whole: {part(kept, len(whole))}"


def calendars() -> Iterator[str]:
    """Calendar files as programs write them: answers, single occurrences, zones by Windows and old names."""
    right = sum(not sample.wrong() for sample in calendar_samples.SAMPLES)
    yield f"calendar files: {part(right, len(calendar_samples.SAMPLES))} right"


def threads() -> Iterator[str]:
    """Conversations that arrived in pieces: related threads named directly, and followed to the end."""
    found = recall(seed=20261117)
    yield f"threads of one conversation, told directly: {part(found.direct, found.pairs)}"
    yield f"threads of one conversation, followed to the end: {part(found.followed, found.pairs)}"


def files() -> Iterator[str]:
    """All words of a file in reading order. Missed: Japanese text that does not name its encoding."""
    right = sum(sample.is_right() for sample in file_samples.SAMPLES)
    yield f"files: {part(right, len(file_samples.SAMPLES))} right"


def verdicts(attacks: Sequence[Attack]) -> str:
    found = [examine(each.subject).verdict for each in attacks]
    flagged = sum(verdict != "clean" for verdict in found)
    malicious = sum(verdict == "malicious" for verdict in found)
    return f"{part(flagged, len(found))} suspicious, {part(malicious, len(found))} malicious"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "suppressions": suppressions,
    "codes": codes_found,
    "kinds": kinds,
    "signals": signals,
    "replies": replies,
    "calendar": calendars,
    "threads": threads,
    "files": files,
}


def main(names: list[str]) -> None:
    for name in names or PARTS:
        print(name)
        for line in PARTS[name]():
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Every rule by its name, weight and reason, and the verdict that the weights add up to."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Verdict = Literal["clean", "suspicious", "malicious"]

SUSPICIOUS_FROM = 3
MALICIOUS_FROM = 6


class SignalRule(Struct, frozen=True):
    name: str
    weight: int
    reason: str


SIGNAL_RULES = (
    SignalRule("overrides_instructions", 6, "Tells its reader to ignore the instructions it works by."),
    SignalRule("addresses_machine", 3, "Speaks to an AI or a language model as its reader."),
    SignalRule("commands_machine", 3, "Tells the machine that it speaks to what to do."),
    SignalRule("asks_for_prompt", 4, "Asks its reader to reveal its own instructions."),
    SignalRule("acts_in_secret", 2, "Asks its reader to act without the knowledge of its user."),
    SignalRule("hides_from_user", 3, "Asks its reader to keep something from its user or out of a summary."),
    SignalRule("gives_orders", 3, "Gives its reader new instructions, in place of those it works by."),
    SignalRule(
        "claims_authority", 3, "Claims to be allowed to command the reader, or that its user has agreed."
    ),
    SignalRule("disables_checks", 6, "Tells its reader to go without its safety checks or approvals."),
    SignalRule("asks_to_play_a_role", 4, "Asks its reader to act as a machine without rules."),
    SignalRule("leaks_by_link", 6, "Asks for a picture or a link that carries away what the reader knows."),
    SignalRule("role_markers", 3, "Holds marks that separate the speakers in a conversation with a model."),
    SignalRule(
        "quoted_instructions", 1, "Quotes an instruction to a machine while speaking of such attacks."
    ),
    SignalRule("hidden_instructions", 6, "Holds an instruction or a request that the text does not show."),
    SignalRule(
        "encoded_instructions", 6, "Holds an encoded text that decodes to an instruction or a request."
    ),
    SignalRule(
        "hidden_text", 1, "Holds text that its HTML hides, longer than a preview line, or perhaps hides."
    ),
    SignalRule("smuggled_characters", 4, "Holds characters that show nothing and can spell a text."),
    SignalRule("zero_width_in_words", 2, "Has characters of no width inside of words."),
    SignalRule(
        "lookalike_letters", 2, "Mixes letters of several scripts inside a word, where they look alike."
    ),
    SignalRule(
        "reversed_direction", 2, "Turns the direction of its text, so that it reads otherwise than it is."
    ),
    SignalRule("asks_for_secret", 3, "Asks to be sent a password, a key or a code."),
    SignalRule("asks_to_forward", 3, "Asks to have many mails forwarded."),
    SignalRule("forged_known_sender", 3, "Bears the domain of a known correspondent and fails DMARC."),
    SignalRule(
        "resembles_known_sender", 4, "Comes from a domain that looks like that of a known correspondent."
    ),
    SignalRule(
        "borrowed_name", 2, "Bears a known correspondent's name at another address, and is not proven."
    ),
    SignalRule("name_shows_other_address", 3, "Shows another address as its name, and is not proven."),
    SignalRule("misleading_link", 2, "Shows one domain in the text of a link that leads to another."),
)
BY_NAME = {rule.name: rule for rule in SIGNAL_RULES}


class RaisedSignal(Struct, frozen=True):
    name: str
    weight: int
    excerpt: str
    reason: str = ""


def verdict_of(signals: Iterable[RaisedSignal]) -> Verdict:
    total = sum(signal.weight for signal in signals)
    if total >= MALICIOUS_FROM:
        return "malicious"
    return "suspicious" if total >= SUSPICIOUS_FROM else "clean"

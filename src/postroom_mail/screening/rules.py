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
    SignalRule("addresses_machine", 3, "Addresses an AI or a language model as its reader."),
    SignalRule("commands_machine", 3, "Tells the machine it addresses what to do."),
    SignalRule("asks_for_prompt", 4, "Asks its reader to reveal its own instructions."),
    SignalRule("acts_in_secret", 2, "Asks its reader to act without its user's knowledge."),
    SignalRule("hides_from_user", 3, "Asks its reader to keep something from its user or out of a summary."),
    SignalRule("gives_orders", 3, "Gives its reader new instructions, in place of those it works by."),
    SignalRule(
        "claims_authority", 3, "Claims to be allowed to command the reader, or that its user has agreed."
    ),
    SignalRule("disables_checks", 6, "Tells its reader to skip its safety checks or approvals."),
    SignalRule("asks_to_play_a_role", 4, "Asks its reader to act as a machine without rules."),
    SignalRule("leaks_by_link", 6, "Asks for an image or a link that leaks what the reader knows."),
    SignalRule(
        "role_markers", 3, "Contains marks that separate the speakers in a conversation with a model."
    ),
    SignalRule(
        "quoted_instructions", 1, "Quotes an instruction to a machine while speaking of such attacks."
    ),
    SignalRule("hidden_instructions", 6, "Contains a hidden instruction or request."),
    SignalRule(
        "encoded_instructions", 6, "Contains encoded text that decodes to an instruction or a request."
    ),
    SignalRule(
        "hidden_text", 1, "Contains text that its HTML may hide, or hidden text longer than a preview line."
    ),
    SignalRule("smuggled_characters", 4, "Contains invisible characters that can spell a text."),
    SignalRule("zero_width_in_words", 2, "Has zero-width characters inside words."),
    SignalRule("lookalike_letters", 2, "Mixes look-alike letters of several scripts inside a word."),
    SignalRule("reversed_direction", 2, "Reverses the direction of its text, so that it reads differently."),
    SignalRule("asks_for_secret", 3, "Asks to be sent a password, a key or a code."),
    SignalRule("asks_to_forward", 3, "Asks to have many emails forwarded."),
    SignalRule("forged_known_sender", 3, "Uses a known correspondent's domain and fails DMARC."),
    SignalRule("resembles_known_sender", 4, "Comes from a domain that resembles a known correspondent's."),
    SignalRule("borrowed_name", 2, "Uses a known correspondent's name with another, unverified address."),
    SignalRule("name_shows_other_address", 3, "Shows another address as its name, and is not verified."),
    SignalRule("runs_when_opened", 4, "Attaches a file that runs when it is opened."),
    SignalRule("disguised_file", 3, "Attaches a program under a name that reads as a document."),
    SignalRule("archived_program", 4, "Attaches an archive or disk image that can contain a program to run."),
    SignalRule("office_macros", 3, "Attaches an office document that runs macros, or loads what runs."),
    SignalRule(
        "active_content", 3, "Attaches a page or picture with a script, or a PDF that starts a program."
    ),
    SignalRule("locked_archive", 2, "Attaches an archive whose content is encrypted."),
    SignalRule("password_beside", 2, "Mentions a password for an encrypted archive."),
    SignalRule(
        "changes_payment_details", 3, "Says that payment details have changed, such as a bank account."
    ),
    SignalRule("asks_for_gift_cards", 3, "Asks for gift cards and their codes."),
    SignalRule("presses_for_payment", 2, "Presses its reader to make a payment."),
    SignalRule("asks_for_secrecy", 2, "Asks its reader to keep something secret."),
    SignalRule("threatens_account", 2, "Says that an account is or will be blocked, or has to be confirmed."),
    SignalRule("promises_prize", 3, "Says that its reader has won, or was chosen for, a prize."),
    SignalRule("credential_form", 3, "Contains a form that takes a password."),
    SignalRule("poses_as_colleague", 3, "Uses a name of the account's own people with another address."),
    SignalRule(
        "poses_as_company", 3, "Uses a well-known company's name with an address that is not the company's."
    ),
    SignalRule("no_sender_address", 3, "Shows a sender's name without an email address."),
    SignalRule("reply_elsewhere", 3, "Sends answers to an imitation of the sender, or past a forged one."),
    SignalRule("misleading_link", 2, "Shows one domain in the text of a link that leads to another."),
)
# What people are tricked with. Hidden, they are no instructions to a machine.
FRAUD = frozenset((
    "changes_payment_details", "asks_for_gift_cards", "presses_for_payment", "asks_for_secrecy",
    "threatens_account", "promises_prize",
))  # fmt: skip
BY_NAME = {rule.name: rule for rule in SIGNAL_RULES}


class RaisedSignal(Struct, frozen=True):
    name: str
    weight: int
    excerpt: str
    reason: str = ""


def verdict_of(signals: Iterable[RaisedSignal]) -> Verdict:
    """Return the verdict for the sum of the weights; a single signal is at most suspicious."""
    weights = [signal.weight for signal in signals]
    total = sum(weights)
    if total >= MALICIOUS_FROM and len(weights) > 1:
        return "malicious"
    return "suspicious" if total >= SUSPICIOUS_FROM else "clean"

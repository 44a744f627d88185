"""What one language says: each field is a list of word beginnings, separated by bars."""

from msgspec import Struct


class Language(Struct, frozen=True, kw_only=True):
    """The words from which sentences are recognised; a sentence must hold one of each group of its rule."""

    name: str
    # overrides_instructions: a verb, what makes it "the instructions you have", and the instructions
    ignore: str
    earlier: str
    instructions: str
    # addresses_machine: a form of address directly before a machine
    address: str
    machine: str
    # asks_for_prompt
    reveal: str
    prompt: str
    # acts_in_secret: whole phrases
    unnoticed: str
    # asks_for_secret: a request and what is asked for
    send: str
    valuables: str
    # asks_to_forward: a verb, a number of mails, and mails
    forward: str
    many: str
    mails: str
    # negations, which make a request a warning
    never: str

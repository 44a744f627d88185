"""Words that name a one-time code, or something that is none, from the files of languages."""

from postroom.mail.languages.read import as_written, words

# These name a one-time code and hardly ever anything else.
CERTAIN = words("codes: certain", is_joined=False)
# The same, in languages that write without spaces or join endings to words.
CERTAIN_JOINED = words("codes: certain", is_joined=True)
# These may name anything: what stands around them decides.
PLAIN = (*as_written("codes: plain as written"), *words("codes: plain", is_joined=False))
PLAIN_JOINED = words("codes: plain", is_joined=True)
# Most of these stay the same for years; only digits next to words of signing in are a code.
PASSWORDS = words("codes: password", is_joined=False)
PASSWORDS_JOINED = words("codes: password", is_joined=True)

# Beginnings of words that speak of signing in, proving who one is, or a code that must be kept secret.
SIGNING_IN = words("codes: signing in")
# Words in front of "code" (or, in Romance languages, behind it) that make it something else.
OTHER_KINDS = words("codes: other kinds", is_joined=False)
OTHER_KINDS_JOINED = words("codes: other kinds", is_joined=True)
# A shop, a journey or a meeting speaks; its codes open no account.
OTHER_MATTERS = words("codes: other matters")
# What may stand between the word and its code, besides marks: "is", and the like.
LINKS = (*words("codes: links"), ":")
# Words that ask for the code to be typed, in front of it; some languages put them behind it.
ASKING = words("codes: asking")
ASKING_BEHIND = (*words("codes: asking behind"), *words("codes: asking", is_joined=False))
# "with" in front of "the code 482193", and words that hold it in themselves.
WITH = words("codes: with")
# What a code in front of its word is followed by.
IS_YOUR = words("codes: is your")
# Words in front of a number that is no code.
OTHER_NUMBERS = words("codes: other numbers", is_joined=False)
OTHER_NUMBERS_JOINED = words("codes: other numbers", is_joined=True)
# The same words, when the code is for what they name.
YOUR_NUMBERS = words("codes: your numbers")
OF = words("codes: of")
# What may follow the number of a postcode, size or amount, and never a code.
UNITS = words("codes: units")
# Capitals behind "your code is" that are words.
NO_CODES = frozenset(words("codes: capitals that are words"))

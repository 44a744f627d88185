"""Words that name a one-time code, or something that is none, from the files of languages."""

from postroom_mail.languages.read import as_written, words

# These name a one-time code and hardly ever anything else.
CERTAIN = words("codes: certain", is_joined=False)
# The same, in languages that write without spaces or join endings to words.
CERTAIN_JOINED = words("codes: certain", is_joined=True)
# These may name anything: the context decides.
PLAIN = (*as_written("codes: plain as written"), *words("codes: plain", is_joined=False))
PLAIN_JOINED = words("codes: plain", is_joined=True)
# Most of these stay the same for years; only digits next to words about signing in are a code.
PASSWORDS = words("codes: password", is_joined=False)
PASSWORDS_JOINED = words("codes: password", is_joined=True)

# Beginnings of words about signing in, identity, or a code that must be kept secret.
SIGNING_IN = words("codes: signing in")
# Words before "code" (or, in Romance languages, after it) that make it something else.
OTHER_KINDS = words("codes: other kinds", is_joined=False)
OTHER_KINDS_JOINED = words("codes: other kinds", is_joined=True)
# Words of shops, journeys and meetings, whose codes open no account.
OTHER_MATTERS = words("codes: other matters")
# What may be between the word and its code, besides punctuation: "is" and similar.
LINKS = (*words("codes: links"), ":")
# Words that ask to type the code, before it; some languages put them after it.
ASKING = words("codes: asking")
ASKING_BEHIND = (*words("codes: asking behind"), *words("codes: asking", is_joined=False))
# What may follow a code in a short note.
PLEASE = words("codes: please")
# "with" before "the code 482193", and words that include it.
WITH = words("codes: with")
# What follows a code that comes before its word.
IS_YOUR = words("codes: is your")
# Words before a number that is no code.
OTHER_NUMBERS = words("codes: other numbers", is_joined=False)
OTHER_NUMBERS_JOINED = words("codes: other numbers", is_joined=True)
# The same words, if the code is for what they name.
YOUR_NUMBERS = words("codes: your numbers")
OF = words("codes: of")
# What may follow the number of a postcode, size or amount, and never a code.
UNITS = words("codes: units")
# Capitals after "your code is" that are words.
NO_CODES = frozenset(words("codes: capitals that are words"))

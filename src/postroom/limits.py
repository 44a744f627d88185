"""The numbers that callers are promised: how much a request, an email and an answer may hold.

Each stands here alone. A bound that only protects the server, or that one function alone knows, stays there.
"""

MEGABYTE = 1024 * 1024

# An email that is sent
LINE_CHARACTERS = 998  # RFC 5322 section 2.1.1: of a line, without its CRLF
SUBJECT_CHARACTERS = LINE_CHARACTERS
HEADER_CHARACTERS = LINE_CHARACTERS  # of a caller's own header field, name and value each
OWN_HEADERS = 20
BODY_CHARACTERS = 100_000
HTML_CHARACTERS = 500_000
RECIPIENTS = 50  # To, Cc and Bcc together
METADATA_ENTRIES = 20
METADATA_NAME_CHARACTERS = 100
METADATA_VALUE_CHARACTERS = 1000
INBOX_METADATA_ENTRIES = 256  # of an inbox, which no email carries
UNDO_SECONDS = 120
SEND_AHEAD_DAYS = 30
VISIBLE_CHARACTERS = 255  # of an Idempotency-Key, a clientId, and the UID of an appointment

# Its attachments
ATTACHMENTS_BYTES = 25 * MEGABYTE  # decoded, all together
ATTACHMENTS_TOGETHER = f"{ATTACHMENTS_BYTES // MEGABYTE} MB in total"
ATTACHMENTS = 100
FILENAME_CHARACTERS = 1000
CONTENT_TYPE_CHARACTERS = 500

# Files that are uploaded before they are attached, of an account
UPLOADS_WAITING = 100
UPLOADS_WAITING_BYTES = 4 * ATTACHMENTS_BYTES
UPLOADED_HOURS = 1  # how long one waits to be attached

# An appointment
ATTENDEES = 50  # as many as an email has recipients
CALENDAR_TEXT_CHARACTERS = 500  # its summary, its location, its rule
CALENDAR_COMMENT_CHARACTERS = 2000

# An email as a whole: 25 MB of files are 34.2 MB in base64 with its line breaks (RFC 2045 section 6.8)
EMAIL_BYTES = 35 * MEGABYTE
FOREIGN_EMAIL_BYTES = (
    40 * MEGABYTE
)  # as a service posts it or a mailbox elsewhere holds it: theirs may be larger

# Names and words
ADDRESS_CHARACTERS = 320  # RFC 5321 section 4.5.3.1: 64 before the @, and 255 behind it
MAILBOX_NAME_CHARACTERS = 30
NAME_CHARACTERS = 200  # of whatever people name: accounts, pods, inboxes, keys, templates, users
SIGN_IN_NAME_CHARACTERS = 100  # of a person or a passkey, given while signing in
LABEL_CHARACTERS = 50
LABELS_OF_A_THREAD = 20
NOTE_CHARACTERS = 1000  # with a decision
THREAD_NOTE_CHARACTERS = 20_000
NOTES_OF_A_THREAD = 500
SNOOZE_DAYS = 366
FOLLOW_UPS = 5  # that a send prepares
EXPECT_DAYS = 366
RULES_OF_A_LEVEL = 100
ACTIONS_OF_A_RULE = 10
RULE_TEST_MESSAGES = 1_000  # that a test of a rule looks at
SAVED_SEARCHES = 50
SAVED_SEARCH_NAME_CHARACTERS = 50

# Calendars
CALENDARS_OF_AN_INBOX = 20
EVENTS_OF_A_CALENDAR = 200_000
CALENDAR_RANGE_DAYS = 366  # that one list of occurrences covers
FREE_BUSY_DAYS = 62
FREE_BUSY_INBOXES = 50
SLOTS = 100  # that one search for free time returns
RECURRENCE_LINES = 20
EVENT_DESCRIPTION_CHARACTERS = 20_000
FEED_BYTES = 1 * MEGABYTE  # of a calendar file that is imported
REMINDER_MINUTES = 40_320  # four weeks
CALENDAR_OBJECT_BYTES = 256 * 1024  # of an event that a CalDAV client stores

# A list
PAGE = 50
LONGEST_PAGE = 100  # more is clamped to this
PAGE_BYTES = 4 * MEGABYTE  # of contents: a page that would hold more is cut short

# A request that waits, in seconds: many proxies give up after one or two minutes
EVENTS_WAIT_SECONDS = 60
MESSAGE_WAIT_SECONDS = 120
DECISION_WAIT_SECONDS = 60
DECISIONS_AWAITED = 100  # requests of one key that wait for decisions at the same time

# A body without attachments
REQUEST_BYTES = 1 * MEGABYTE

# Emails as examples for the junk filter
LESSON_BYTES = 700_000  # of an email; in base64 it fits into a request
LESSONS_BYTES = 1_000_000  # of a request, in base64
LESSONS_TOGETHER = 50

# Inboxes
ALIASES = 50  # of an inbox

# Webhooks and keys
WEBHOOKS = 50
WEBHOOK_HEADERS = 20
WEBHOOK_KINDS = 50  # of events that one webhook or subscription names
KEYS_OF_AN_INBOX = 20  # and of a pod

# How much an inbox sends and an account makes, unless the operator says otherwise
SENDS_PER_MINUTE = 10
SENDS_PER_DAY = 200
COLD_RECIPIENTS_PER_DAY = 20  # of an inbox younger than COLD_LIMIT_DAYS
COLD_LIMIT_DAYS = 30
INBOXES_PER_DAY = 100
REQUESTS_PER_MINUTE = 1_000

# Approvals
APPROVALS = 3  # of different people, for one email
APPROVAL_HOURS = 72  # unless the rule says otherwise

# Streams and feedback
STREAMS_OF_AN_ACCOUNT = 100
FEEDBACK_A_DAY = 20  # of a key
FEEDBACK_CONTEXT_BYTES = 8 * 1024

# How long things are kept, and links work
EVENTS_DAYS = 30
IDEMPOTENCY_HOURS = 24
ATTACHMENT_LINK_MINUTES = 15
FILE_LINK_MINUTES = 15  # of an upload or a download that works once
SIGN_IN_LINK_MINUTES = 15
INVITATION_HOURS = 72

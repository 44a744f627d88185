"""All that a server loads before its first request, and nearly all of a command: forks of it have it already.

Their servers make no key of their own, which takes longer than all else of a start.
"""

import functools
import gc
import importlib

from postroom import assembly
from postroom.inward.journal import mail_journal
from postroom.inward.receive import warm_up
from postroom.processes import struct_types
from postroom_client.transport import wire
from tests.mail.keys import give_every_domain_this_key, signing_key

PRESENT_SECONDS = 60.0  # a mail with a 250 is in its inbox, also where the machine needs more than a second
MODULES = (
    "tests.warm_start",
    "postroom.commands.server",
    "postroom.commands.operator",
    "postroom.welcome",
    "postroom.imap.server",
    "postroom.storage.engines.postgres",
    "postroom_client.client",
    "postroom_client.mcp.server",
    "postroom_mail.files.child",
    "anyio._backends._asyncio",
    "cryptography.hazmat.backends.openssl",
    "cryptography.x509",
    "encodings.idna",
    "httpcore2",
    "platformdirs",
    "rich.console",
    "rich.table",
    "typer._adapters",
    "uvicorn.lifespan.off",
)

for name in MODULES:
    importlib.import_module(name)
mail_journal.PRESENT_SECONDS = PRESENT_SECONDS
give_every_domain_this_key()
assembly.serving = functools.partial(assembly.serving, make_key=signing_key)
signing_key()
wire.trusted()
struct_types.prepare()
warm_up()  # as a server without workers does before its first mail
gc.freeze()

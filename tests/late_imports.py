"""What the program makes or loads at its first use: forks of this process have it already."""

import importlib

from hypothesis.internal.charmap import charmap

from postroom.inward import receive
from postroom.net.certificate import trusted_authorities
from postroom.web.dashboard.display.rendering import Renderer
from postroom_client.transport import wire
from postroom_mail.languages.patterns import compile_one
from tests.plain_transport import trusting

MODULES = ("httpcore2", "jsonschema", "mcp.server", "webauthn", "websockets.client")


def load() -> None:
    for name in MODULES:
        importlib.import_module(name)
    trusting()
    wire.trusted()
    trusted_authorities()
    charmap()
    receive.warm_up()
    while compile_one():
        pass
    templates = Renderer("")._environment
    for name in templates.list_templates(filter_func=lambda name: name.endswith(".html") and "/" not in name):
        templates.get_template(name)

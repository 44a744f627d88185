"""The body of a redirect."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.web.interface.bodies.send_body import Addresses


class RedirectBody(Struct, rename="camel", frozen=True):
    to: Annotated[Addresses, Meta(description="Who gets the mail as it came; at most 50.")]

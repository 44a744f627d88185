"""What the tests of the interface share."""

from collections.abc import Iterator

import pytest

from postroom.mail.proof import dkim
from tests.mail.keys import signing_key


@pytest.fixture(autouse=True, scope="module")
def ready_key() -> Iterator[None]:
    """For new domains: making a key takes longer than most tests."""
    signing_key()  # made by the function that is replaced
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dkim, "generate_key", signing_key)
        yield

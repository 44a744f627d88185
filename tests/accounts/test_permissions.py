"""Permissions: what a key of the /v0 interface may do is told by its words."""

import pytest

from postroom.accounts.permissions import require_any, require_word
from postroom.errors import Forbidden


def test_a_key_with_words_does_what_one_of_them_allows() -> None:
    held = frozenset({"message_read", "draft_read"})
    require_word(held, "message_read")
    require_word(held, "")  # needs none
    require_word(None, "message_send")  # a key without words is judged by its permissions
    for words in (held, frozenset[str]()):
        with pytest.raises(Forbidden, match="message_send"):
            require_word(words, "message_send")


def test_a_key_needs_one_of_the_permissions_that_are_named() -> None:
    held = frozenset({"read", "draft"})
    require_any(held, ("draft", "send"))
    require_any(held, ())
    with pytest.raises(Forbidden, match="send or approve"):
        require_any(held, ("send", "approve"))

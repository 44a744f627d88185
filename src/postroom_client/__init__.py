"""The Postroom client: `Client`, `AsyncClient`, `verify_signature`, and one exception per error code."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroom_client import errors
    from postroom_client.async_client import AsyncClient
    from postroom_client.client import Client
    from postroom_client.errors import PostroomError
    from postroom_client.transport.exchange import OutgoingFile, Patience
    from postroom_client.webhook_signature import verify_signature

__version__ = "1.0.0"

__all__ = [
    "AsyncClient",
    "Client",
    "OutgoingFile",
    "Patience",
    "PostroomError",
    "__version__",
    "errors",
    "verify_signature",
]

_HOME = {
    "AsyncClient": "async_client",
    "Client": "client",
    "OutgoingFile": "transport.exchange",
    "Patience": "transport.exchange",
    "PostroomError": "errors",
    "verify_signature": "webhook_signature",
}


def __getattr__(name: str) -> Any:
    """Loads a name on first use: the command line starts without the network libraries."""
    import importlib

    if name == "errors":
        return importlib.import_module("postroom_client.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'postroom_client' has no attribute '{name}'")
    return getattr(importlib.import_module(f"postroom_client.{_HOME[name]}"), name)

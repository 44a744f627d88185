"""Postroom: self-hosted email for software agents."""

from postroom_client import __version__ as __version__

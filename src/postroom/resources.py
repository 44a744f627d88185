"""What every door is given: the settings, the storage and the time."""

from dataclasses import dataclass

from postroom.clock import Clock
from postroom.config import Config
from postroom.storage.blobs import Blobs
from postroom.storage.database import Database, Tx

__all__ = ["Resources", "Tx"]


@dataclass(frozen=True, slots=True)
class Resources:
    config: Config
    db: Database
    blobs: Blobs
    clock: Clock

    def now(self) -> int:
        return self.clock.now()

"""When each key was last used."""

from postroom.accounts import keys
from postroom.resources import Resources


class KeyUse:
    """Collected here and written once in a while: never a write a request."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._used_at: dict[str, int] = {}

    def note(self, key_id: str, now: int) -> None:
        self._used_at[key_id] = now

    async def save(self) -> None:
        used_at, self._used_at = self._used_at, {}
        if not used_at:
            return
        try:
            await self._resources.db.write(keys.mark_used, used_at)
        except Exception as error:  # a convenience: the next round tries again
            self._used_at = used_at | self._used_at
            self._resources.loops.failed("last use of keys", error)
        else:
            self._resources.loops.works("last use of keys")

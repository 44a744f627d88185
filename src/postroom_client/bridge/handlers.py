"""Handlers of a bridge: a local HTTP endpoint, or a command that reads its standard input."""

import os
import signal
import subprocess
from typing import Protocol

import httpx2

from postroom_client.bridge.files import BridgeFault, BridgeSettings
from postroom_client.transport.stream import Frame


class Handler(Protocol):
    def hand_over(self, frame: Frame) -> str | None:
        """Hand an event over. None if it was taken; else why not."""


def make_handler(settings: BridgeSettings) -> Handler:
    if settings.forward_to:
        return Endpoint(settings.forward_to, settings.token, settings.timeout_seconds)
    if settings.command:
        return Command(settings.command, settings.timeout_seconds)
    raise BridgeFault("Say where to send events: --forward-to URL or --command COMMAND.")


class Endpoint:
    """Posts the event, byte for byte as the server sent it; any 2xx takes it."""

    def __init__(self, url: str, token: str | None, timeout_seconds: float) -> None:
        if not url.startswith(("http://", "https://")):
            raise BridgeFault(f"{url} is not an http or https URL.")
        headers = {"Content-Type": "application/json", "User-Agent": "postroom-bridge"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._http = httpx2.Client(headers=headers, timeout=timeout_seconds, trust_env=False)

    def hand_over(self, frame: Frame) -> str | None:
        try:
            answer = self._http.post(
                self._url, content=frame.text.encode(), headers={"X-Event-Id": frame.event_id}
            )
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            return f"{self._url} did not answer: {str(error) or type(error).__name__}"
        return None if answer.is_success else f"{self._url} answered {answer.status_code}"


class Command:
    """Runs once for each event, which it reads on standard input; exit status 0 takes it."""

    def __init__(self, command: list[str], timeout_seconds: float) -> None:
        self._command = command
        self._timeout_seconds = timeout_seconds

    def hand_over(self, frame: Frame) -> str | None:
        environment = os.environ | {"POSTROOM_EVENT": frame.kind, "POSTROOM_EVENT_ID": frame.event_id}
        try:
            process = subprocess.Popen(  # noqa: S603 (the owner's own command, without a shell)
                self._command, stdin=subprocess.PIPE, env=environment, start_new_session=True
            )
        except OSError as error:
            return f"{self._command[0]} cannot be run: {error}"
        try:
            process.communicate(frame.text.encode() + b"\n", timeout=self._timeout_seconds)
        except subprocess.TimeoutExpired:
            return f"{self._command[0]} took longer than {self._timeout_seconds:g} s"
        finally:
            _end(process)
        return None if process.returncode == 0 else f"{self._command[0]} ended with {process.returncode}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends its children too: they could overtake the next event."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

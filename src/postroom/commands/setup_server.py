"""The server while `postroom setup` runs: started if none runs, and its certificate awaited."""

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import tempfile
import time

from postroom.clock import SystemClock, to_iso
from postroom.config import Config, serves_https
from postroom.host_setup.systemd import Service, SetupFailed

START_SECONDS, STOP_SECONDS = 120.0, 60.0
CERTIFICATE_SECONDS = 240.0
PAUSE_SECONDS = 0.2
LOOK_EVERY = 15  # pauses between two looks at the reason why there is none
ANSWER_SECONDS = 10.0
MOST_READ = 64 * 1024


class SetupServer:
    def __init__(self, service: Service, config: Config) -> None:
        self._service, self._config = service, config
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, has_changed: bool) -> bool:
        """Return True if a server was started. Without systemd it runs until `stop`."""
        was_there = self.answers()
        if self._service.is_by_systemd:
            self._service.start_by_systemd(has_changed)
        elif not was_there:
            self._start_child()
        else:
            return False
        self._wait_until_it_answers()
        return not was_there

    def stop(self) -> None:
        if self._child is not None:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_SECONDS)
            self._child = None

    def _start_child(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (read if the server ends)
        self._child = subprocess.Popen(  # noqa: S603 (every argument is ours)
            self._service.command("serve"),
            env=self._service.environment(os.environ),
            cwd=self._service.data_dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # it names the first key
            stderr=self._log,
        )

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers("/ready"):
            if self._child is not None and self._child.poll() is not None:
                raise SetupFailed(f"The server ended at once: {self._said()}")
            if time.monotonic() > deadline:
                raise SetupFailed(f"The server is not ready at {self._config.http}: {self._said()}")
            time.sleep(PAUSE_SECONDS)

    def _said(self) -> str:
        """Return the end of the server's log."""
        if self._child is None:
            return "read its log"
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace").strip()[-500:]

    def answers(self, path: str = "/health") -> bool:
        """Return True if a Postroom answers at the HTTP address, with any certificate.

        Ready is one whose workers take email.
        """
        endpoint = self._config.http
        host = "127.0.0.1" if endpoint.host in ("0.0.0.0", "::") else endpoint.host  # noqa: S104
        connection: http.client.HTTPConnection
        if serves_https(self._config):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # to this machine itself
            connection = http.client.HTTPSConnection(
                host, endpoint.port, timeout=ANSWER_SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, endpoint.port, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status == 200 and "status" in json.loads(answer.read(MOST_READ))
        except (OSError, ValueError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_for_certificate(self) -> str:
        """Return "" once clients trust the server's certificate, or why there is none.

        After an order that failed before, the next one would come hours later: it is tried now.
        """
        if self._find_fault() and self._find_reason():
            self._service.run("certificates", "--order", "--json")
        deadline, looks = time.monotonic() + CERTIFICATE_SECONDS, 0
        while (fault := self._find_fault()) and time.monotonic() < deadline:
            looks += 1
            if looks % LOOK_EVERY == 0 and (reason := self._find_reason()):
                return reason
            time.sleep(PAUSE_SECONDS)
        return fault and (self._find_reason() or fault)

    def _find_fault(self) -> str:
        """Return "" if a client that knows the authorities of this machine would go on."""
        context = ssl.create_default_context()
        address = ("127.0.0.1", self._config.http.port)
        try:
            with (
                socket.create_connection(address, ANSWER_SECONDS) as raw,
                context.wrap_socket(raw, server_hostname=self._config.domain),
            ):
                return ""
        except OSError as error:  # ssl.SSLError is one
            return str(error)

    def _find_reason(self) -> str:
        """Return why the last order failed; "" while one is due."""
        rows = json.loads(self._service.run("certificates", "--json"))["data"]
        now = to_iso(SystemClock().now())
        own = [each for each in rows if self._config.domain in each["names"].split()]
        return next((str(each["error"]) for each in own if each["nextOrderAt"] > now), "")

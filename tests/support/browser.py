"""A real browser for the tests: Chromium without a window, driven over its own protocol through a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess

import processes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One Chromium with one tab; a context manager."""

    def __init__(self, profile):
        self._ids, self.messages = 0, []
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-extensions", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            # Chromium reads commands from descriptor 3 and answers on 4.
            processes.command([CHROMIUM, *flags, "about:blank"], descriptors=(to_browser, from_browser)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._session = b"", None

    def __enter__(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
        os.close(self._in)
        os.close(self._out)

    def ask(self, method, **parameters):
        """Send a command and wait for its answer; events on the way are kept in ``messages``."""
        self._ids += 1
        command = {"id": self._ids, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._ids:
                assert "error" not in message, message["error"]
                return message["result"]
            self.messages.append(message)

    def _next(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], processes.LIMIT)
            assert ready, "Chromium does not answer"
            piece = os.read(self._in, 1 << 16)
            assert piece, "Chromium went away"
            self._buffer += piece
        raw, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(raw)

    def show(self, path, *, width, height=844, scheme="light", mobile=False):
        """Load a file at a size and in a colour scheme, and wait until it is there."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.messages.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not any(m.get("method") == "Page.loadEventFired" for m in self.messages):
            self.messages.append(self._next())

    def run(self, expression):
        """The value of a JavaScript expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, *, whole=False):
        """What is seen, as PNG bytes."""
        return base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def complaints(self):
        """Console messages, log entries (blocked resources, refused styles) and exceptions since the page was shown."""
        noisy = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [m["params"] for m in self.messages if m.get("method") in noisy]

    def requests(self):
        """The addresses asked for since the page was shown."""
        return [m["params"]["request"]["url"] for m in self.messages if m.get("method") == "Network.requestWillBeSent"]

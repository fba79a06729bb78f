"""A headless browser that tests look at pages with, over its debugging pipe."""

import base64
import itertools
import json
import os
import subprocess
from contextlib import contextmanager

from programs import require

_KEYS = {"Tab": 9, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}


class Page:
    """One page in a browser of its own."""

    def __init__(self, out, into):
        self._out, self._into = out, into
        self._numbers = itertools.count(1)
        self._left = b""
        self._last = None
        self._session = None
        self.complaints = []
        """What the browser has logged of the page, and errors of its scripts."""
        self.requested = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method, **parameters):
        """Do something by the protocol of Chrome's developer tools."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._left:
            part = os.read(self._into, 1 << 16)
            assert part, "the browser has ended"
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        event = json.loads(text)
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(event["params"])
        if event.get("method") == "Network.requestWillBeSent":
            self.requested.append(event["params"]["request"]["url"])
        self._last = event.get("method")
        return event

    def look(self, url, width, scheme):
        """Load a page in a window so wide, light or dark."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.requested.clear()
        self.command("Page.navigate", url=url)
        while self._last != "Page.loadEventFired":
            self._receive()

    def evaluate(self, expression):
        """Return the value of an expression on the page."""
        found = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key, times=1):
        """Press a key, as somebody without a mouse does."""
        code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        for _ in range(times):
            for kind in ("rawKeyDown", "keyUp"):
                self.command("Input.dispatchKeyEvent", type=kind, **code)

    def picture(self, path):
        """Save what is seen of the whole page."""
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def page(folder):
    """Open a browser, whose files are in `folder`."""
    to_browser, out = os.pipe()
    into, from_browser = os.pipe()

    browser = [require("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu"]
    browser += ["--remote-debugging-pipe", f"--user-data-dir={folder / 'browser'}"]
    # It reads from 3 and writes to 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "browser"]
    process = subprocess.Popen(
        [*shell, *map(str, browser)],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(out, into)
    finally:
        process.kill()
        process.wait()
        os.close(out)
        os.close(into)

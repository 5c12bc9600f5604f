"""The documented example holds a daemon that knows nothing of duties: real processes, loopback, bounded."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from oarbank_sdk.control import replace_text
from tests import needs

EXAMPLE = Path(__file__).parents[2] / "examples" / "rate_limited_proxy.py"

pytestmark = [pytest.mark.realtime, needs.posix("nudges are signals")]


DAEMON = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[2], "ab").write(b"x")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


class Proxied:
    """The example with a daemon behind it, steered as an agent does."""

    def __init__(self, folder: Path) -> None:
        self.control = folder / "control.json"
        self.control.write_text('{"seq": 0, "gpu_duty": 0}')
        self._seen = folder / "seen"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        daemon = [sys.executable, "-c", DAEMON, port, str(self._seen)]
        self.process = subprocess.Popen(
            [sys.executable, EXAMPLE, "0", port, "0.01", *daemon],
            env={**os.environ, "OARBANK_WORKDIR": str(folder)},
            stdout=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),  # as an agent starts it
        )  # fmt: skip
        assert self.process.stdout is not None
        self._port = int(self.process.stdout.readline())

    @property
    def requests(self) -> int:
        return len(self._seen.read_bytes()) if self._seen.exists() else 0

    def say(self, seq: int, **fields: object) -> None:
        replace_text(self.control, json.dumps({"seq": seq, **fields}))
        self.process.send_signal(signal.SIGUSR1)

    def get(self) -> bytes:
        """Ask until the daemon is up."""
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/", timeout=60) as answer:
                    return answer.read()
            except urllib.error.HTTPError as refused:
                refused.close()
                time.sleep(0.1)
        raise AssertionError("no answer within a minute")


@pytest.fixture
def proxy(tmp_path):
    proxied = Proxied(tmp_path)
    yield proxied
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proxied.process.pid, signal.SIGKILL)
    proxied.process.communicate()


def asked(proxy: Proxied) -> tuple[threading.Thread, list[bytes]]:
    """Ask on another thread, and give it half a second to be let through."""
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(proxy.get()), daemon=True)
    thread.start()
    thread.join(0.5)
    return thread, answers


def test_no_request_passes_at_duty_0_and_one_does_when_it_rises(proxy):
    thread, answers = asked(proxy)
    assert (answers, proxy.requests) == ([], 0)
    proxy.say(1, gpu_duty=0.5)
    thread.join(60)
    assert (answers, proxy.requests) == ([b"ok"], 1)


def test_a_pause_holds_and_its_end_brings_the_duty_back(proxy):
    proxy.say(1, pause=True, gpu_duty=1)
    thread, _ = asked(proxy)
    assert proxy.requests == 0
    proxy.say(2, gpu_duty=1)
    thread.join(60)
    assert proxy.requests == 1


def test_a_stop_ends_the_daemon_and_the_proxy(proxy):
    proxy.say(1, gpu_duty=1)
    assert proxy.get() == b"ok"
    proxy.say(2, stop=True)
    assert proxy.process.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(urllib.error.URLError):
        proxy.get()

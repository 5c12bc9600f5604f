"""A third-party daemon held to a duty through a knob of its own: a small proxy in front of it lets fewer requests in.

The daemon (an inference server, say) knows nothing of duties. Each request keeps the GPU busy for about `cost_s`, so
`duty / cost_s` requests a second are the duty. The supervisor tells the proxy every change.

    OARBANK_WORKDIR=DIR python rate_limited_proxy.py LISTEN_PORT DAEMON_PORT COST_S DAEMON [ARG...]

A sketch to start from: it handles GET, one daemon, and no streaming.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from oarbank_sdk.supervisor import Supervisor


class Rate:
    """At most `duty / cost_s` requests a second, each booked when it is let in; none while paused or at duty 0."""

    def __init__(self, cost_s: float) -> None:
        self._cost_s = cost_s
        self._duty: float | None = None
        self._paused = False
        self._next = 0.0
        self._change = threading.Condition()

    def set(self, duty: float | None) -> None:
        """The supervisor's `gpu_duty`: None lifts the limit."""
        with self._change:
            self._duty = duty
            self._next = time.monotonic()
            self._change.notify_all()

    def pause(self, on: bool) -> None:
        """The supervisor's `pause`."""
        with self._change:
            self._paused = on
            self._change.notify_all()

    def take(self) -> None:
        """Wait for a turn."""
        with self._change:
            while self._paused or self._duty is not None:
                wait_s = self._next - time.monotonic()
                if self._paused or not self._duty:
                    self._change.wait()
                elif wait_s > 0:
                    self._change.wait(wait_s)
                else:
                    self._next = max(self._next, time.monotonic() - self._cost_s) + self._cost_s / self._duty
                    return


def proxy(rate: Rate, daemon_port: int) -> type[BaseHTTPRequestHandler]:
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            rate.take()
            daemon = http.client.HTTPConnection("127.0.0.1", daemon_port, timeout=60)
            try:
                daemon.request("GET", self.path)
                answer = daemon.getresponse()
                body = answer.read()
                self.send_response(answer.status)
            except OSError as fault:
                body = f"the daemon does not answer: {fault}\n".encode()
                self.send_response(502)
            finally:
                daemon.close()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the daemon has its own log."""

    return Proxy


def main() -> int:
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        return 2
    listen, daemon_port, cost_s, *daemon = sys.argv[1:]
    rate = Rate(float(cost_s))
    server = ThreadingHTTPServer(("127.0.0.1", int(listen)), proxy(rate, int(daemon_port)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    return Supervisor(daemon, gpu_duty=rate.set, pause=rate.pause).run()


if __name__ == "__main__":
    raise SystemExit(main())

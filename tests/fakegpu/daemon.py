"""The fake GPU as a process: `python -m tests.fakegpu.daemon SOCKET`, one JSON object a line on a Unix socket.

A client is one connection; its pid is what the system says of the other end. What may be said:

    {"submit": ns}                    queue a buffer; no answer
    {"wait": ticket}                  answered with {"ticket", "start_ns", "end_ns"} once that buffer has ended
    {"counters": true}                {"t_ns", "clients": [{"client", "pid", "busy_ns"}], "hidden": [pid, ...]}
    {"slowness": factor}              buffers take `factor` times as long from now on: {"slowness": factor}
    {"hide": pid}                     `counters` leaves its clients out and names it under "hidden": {"hide": pid}

Anything else is answered with {"fault": why} and ends the connection. The daemon sleeps until a message comes or a
buffer ends, and never spins. A client that vanishes loses what waits; a buffer that runs ends, and so does the
client's counter with it. The daemon ends with its standard input, which is its parent's to hold.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tests.fakegpu.device import Device, Ran

KEEPS = 4096
"""How many ended buffers of a client can still be asked for."""


@dataclass(slots=True)
class Client:
    """One connection."""

    number: int
    pid: int
    socket: socket.socket
    rest: bytes = b""
    done: int = 0  # the last ticket that has ended
    ran: dict[int, Ran] = field(default_factory=dict)
    waits: set[int] = field(default_factory=set)


class Fault(ValueError):
    """A message that nobody can act on; the text goes back to the client."""


class Daemon:
    """Serves one device until standard input ends."""

    def __init__(self, path: str) -> None:
        self._device = Device()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(64)
        self._clients: dict[int, Client] = {}
        self._gone: dict[int, Client] = {}  # whose last buffer still runs
        self._hidden: set[int] = set()
        self._numbers = 0

    def serve(self) -> None:
        while True:
            sockets = {client.socket: client for client in self._clients.values()}
            # select and not epoll, whose time limit is rounded up to whole milliseconds.
            ready, _, _ = select.select([0, self._listener, *sockets], [], [], self._pause_s())
            self._tell_ended()
            if 0 in ready and not os.read(0, 4096):
                return
            if self._listener in ready:
                self._welcome()
            for one in ready:
                if one in sockets:
                    self._hear(sockets[one])

    def _pause_s(self) -> float | None:
        end_ns = self._device.next_end_ns()
        return None if end_ns is None else max(0, end_ns - time.monotonic_ns()) / 1e9

    def _tell_ended(self, now_ns: int | None = None) -> None:
        for ran in self._device.advance(time.monotonic_ns() if now_ns is None else now_ns):
            client = self._clients.get(ran.client)
            if client is None:
                self._gone.pop(ran.client, None)
                continue
            client.done = ran.ticket
            client.ran[ran.ticket] = ran
            client.ran.pop(ran.ticket - KEEPS, None)
            if ran.ticket in client.waits:
                client.waits.discard(ran.ticket)
                self._say_ran(client, ran)

    def _welcome(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        self._numbers += 1
        self._clients[self._numbers] = Client(self._numbers, peer_pid(connection), connection)

    def _hear(self, client: Client) -> None:
        try:
            chunk = client.socket.recv(65536)
        except OSError:
            chunk = b""
        if not chunk:
            self._drop(client)
            return
        *lines, client.rest = (client.rest + chunk).split(b"\n")
        for line in lines:
            if client.number not in self._clients:
                return
            try:
                self._act(client, line)
            except Fault as fault:
                self._say(client, {"fault": str(fault)})
                self._drop(client)

    def _act(self, client: Client, line: bytes) -> None:
        verb, value = message(line)
        if verb == "submit":
            self._device.submit(client.number, value, time.monotonic_ns())
            self._tell_ended()
        elif verb == "wait":
            self._wait(client, value)
        elif verb == "counters":
            self._say(client, self._counters())
        elif verb == "slowness":
            self._device.slowness = value
            self._say(client, {"slowness": value})
        else:
            self._hidden.add(value)
            self._say(client, {"hide": value})

    def _wait(self, client: Client, ticket: int) -> None:
        if ticket in client.ran:
            self._say_ran(client, client.ran[ticket])
        elif ticket <= client.done:
            raise Fault(f"wait: ticket {ticket} ended too long ago")
        else:
            client.waits.add(ticket)

    def _counters(self) -> dict[str, Any]:
        now_ns = time.monotonic_ns()
        self._tell_ended(now_ns)
        shown = [*self._clients.values(), *self._gone.values()]
        listed = [
            {"client": one.number, "pid": one.pid, "busy_ns": self._device.busy_ns(one.number)}
            for one in shown
            if one.pid not in self._hidden
        ]
        return {"t_ns": now_ns, "clients": listed, "hidden": sorted(self._hidden)}

    def _drop(self, client: Client) -> None:
        self._device.vanish(client.number, time.monotonic_ns())
        del self._clients[client.number]
        client.socket.close()
        if self._device.owes(client.number):
            self._gone[client.number] = client

    def _say_ran(self, client: Client, ran: Ran) -> None:
        self._say(client, {"ticket": ran.ticket, "start_ns": ran.start_ns, "end_ns": ran.end_ns})

    def _say(self, client: Client, answer: dict[str, Any]) -> None:
        try:
            client.socket.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:  # gone, or it never reads: `_hear` learns of the first, and the second has only itself to blame
            client.socket.shutdown(socket.SHUT_RDWR)


def message(line: bytes) -> tuple[str, Any]:
    """Give a message's verb and its value. Raises Fault."""
    try:
        told = json.loads(line)
        [(verb, value)] = told.items()
    except (ValueError, AttributeError, RecursionError):
        raise Fault(f"message: must be a JSON object with one key; found {line[:60]!r}") from None
    least = {"submit": 1, "wait": 1, "hide": 1}
    if verb in least and isinstance(value, int) and value >= least[verb]:
        return verb, value
    if verb == "counters" and value is True:
        return verb, value
    if verb == "slowness" and isinstance(value, (int, float)) and 0 < value < 1e6:
        return verb, value
    raise Fault(f"message: must be submit, wait, counters, slowness or hide with its value; found {line[:60]!r}")


def peer_pid(connection: socket.socket) -> int:
    """Say which process made the connection, by the system's word."""
    if sys.platform == "darwin":
        return struct.unpack("i", connection.getsockopt(0, 2, 4))[0]  # SOL_LOCAL, LOCAL_PEERPID
    size = struct.calcsize("3i")
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]


if __name__ == "__main__":
    daemon = Daemon(sys.argv[1])
    print("ready", flush=True)
    daemon.serve()

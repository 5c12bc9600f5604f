"""macOS' IORegistry: the clients of the GPUs, in the text and the plist of `ioreg`, turned into counters of processes.

Decides whose a client is and what its counter says. A client names its process in `IOUserClientCreator` ("pid N,
name") and its time in `AppUsage[].accumulatedGPUTime`, in nanoseconds; older machines carry `accumulatedGPUTime` as a
plain property. A client that closes takes its counter along, so each is its own counter, by registry id. The keys are
undocumented and have changed before: what can't be understood is unknown, never 0. Pure.

Never run: macOS; tested on published readings.
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oarbank_agent_check.gpu_readings import Counter, GpuReading, NotARecording
from oarbank_agent_check.readings import Quantity, Unknown
from oarbank_agent_check.sources.json_recording import PACE_S, whole

CREATOR, USAGE, TIME = "IOUserClientCreator", "AppUsage", "accumulatedGPUTime"
ID, CHILDREN = "IORegistryEntryID", "IORegistryEntryChildren"
MOST_ENGINES = 64
"""How many seconds a second a client may gain: its time is a sum over queues and engines of which nothing is told."""

DEEPEST = 16
"""How deep values in ioreg's text may nest; AppUsage needs two levels."""

NO_SOURCE = Unknown("macOS lists no GPU accelerator here, as in most virtual machines. Run on a Mac with its own GPU.")


@dataclass(frozen=True, slots=True)
class Client:
    """One user client of a GPU: `entry` is its registry id (None: not told), `time` what it used since it opened."""

    pid: int
    entry: int | None
    time: Quantity


def client_of(properties: Mapping[str, Any], entry: int | None) -> Client | None:
    """Read one registry entry; None for what is no client of a process."""
    creator = properties.get(CREATOR)
    found = re.match(r"pid ([0-9]{1,10})(?![0-9])", creator) if isinstance(creator, str) else None
    if found is None or int(found[1]) == 0:  # pid 0 is nobody
        return None
    pid = int(found[1])
    return Client(pid, entry, _time(properties, pid))


def _time(properties: Mapping[str, Any], pid: int) -> Quantity:
    if USAGE not in properties:
        # Without either nothing was submitted yet: a known zero.
        parts = [properties[TIME]] if TIME in properties else []
    elif isinstance(usage := properties[USAGE], list):
        parts = [part.get(TIME) if isinstance(part, Mapping) else None for part in usage]
    else:
        parts = [None]
    times = [whole(part) for part in parts]
    if None in times:
        return Unknown(f"a GPU client of pid {pid} shows its time in a form not known. Report it with `ioreg -l`.")
    return sum(time for time in times if time is not None)


def entry_of(client: Client) -> dict[str, Any]:
    """Give the registry entry that `client_of` would read the client from, without the name of its program."""
    part = {} if isinstance(client.time, Unknown) else {TIME: client.time}
    return {ID: client.entry, CREATOR: f"pid {client.pid}", USAGE: [part]}


def reading_of(t: float, clients: Iterable[Client], pids: Collection[int]) -> GpuReading:
    """Give the counters of `pids`; an entry that was listed twice counts once, with its larger time."""
    counters: dict[tuple[int, int], Counter] = {}
    unknown: dict[int, Unknown] = {}
    for client in clients:
        if client.pid not in pids:
            continue
        if isinstance(client.time, Unknown):
            unknown[client.pid] = client.time
        elif client.entry is None:
            unknown[client.pid] = Unknown(f"a GPU client of pid {client.pid} has no registry id to follow it by.")
        else:
            key = (client.pid, client.entry)
            value = max(client.time, counters[key].value if key in counters else 0)
            counters[key] = Counter(client.pid, f"{client.entry:#x}", "gpu", value, capacity=MOST_ENGINES)
    return GpuReading(t, tuple(counters.values()), unknown=unknown)


# ---- plist ---------------------------------------------------------------------------------------
def parse_plist(document: bytes) -> list[Client] | None:
    """Read `ioreg -a -r -c IOAccelerator -l`; None where it lists no accelerator. Raises NotARecording."""
    if not document.strip():
        return None
    try:
        value = plistlib.loads(document, fmt=plistlib.FMT_XML)
    except Exception as fault:  # plistlib lets out whatever its parts raise, and documents no closed set
        raise NotARecording(f"ioreg plist: must be an XML property list; {str(fault)[:120]}.") from None
    entries = list(value) if isinstance(value, list) else [value]
    if not all(isinstance(entry, dict) for entry in entries):
        raise NotARecording("ioreg plist: must hold registry entries, each a dictionary; found something else.")
    clients, found = [], bool(entries)
    while entries:
        entry = entries.pop()
        if not isinstance(entry, dict):
            continue
        children = entry.get(CHILDREN)
        entries.extend(children if isinstance(children, list) else [])
        client = client_of(entry, whole(entry.get(ID)))
        if client is not None:
            clients.append(client)
    return clients if found else None


# ---- text ----------------------------------------------------------------------------------------
_HEAD = re.compile(r"^[\s|]*\+-o ")
_REGISTRY_ID = re.compile(r"[<,]\s*id 0x([0-9a-fA-F]{1,16})[,>]")
_PROPERTY = re.compile(r'^[\s|]*"([^"]*)" = (.*)$')
_TOKEN = re.compile(r'"[^"]*"|<[^>]*>|[(){},=]|[^\s(){},="<]+')


def parse_text(document: bytes) -> list[Client] | None:
    """Read `ioreg -r -c IOAccelerator -l -w 0`; None where it lists nothing. Raises NotARecording."""
    lines = document.decode("utf-8", "replace").splitlines()
    if not any(line.strip() for line in lines):
        return None
    clients, entry, properties, listed = [], None, {}, 0
    # Properties are sorted, so AppUsage comes before its client's name: only a whole block tells.
    for line in [*lines, "+-o "]:
        if _HEAD.match(line):
            client = client_of(properties, entry)
            if client is not None:
                clients.append(client)
            listed += 1
            found = _REGISTRY_ID.search(line)
            entry, properties = int(found[1], 16) if found else None, {}
        elif found := _PROPERTY.match(line):
            properties[found[1]] = _value(found[2]) if found[1] in (CREATOR, USAGE, TIME) else None
    if listed < 2:  # the end alone
        raise NotARecording("ioreg text: must hold registry entries, each behind '+-o'; found none.")
    return clients


def _value(text: str) -> Any:
    """Read one value as ioreg prints it: "text", number, (list), {"key"=value}; None for what is none of these."""
    tokens = _TOKEN.findall(text)[::-1]
    try:
        value = _next_value(tokens, DEEPEST)
    except (IndexError, ValueError):
        return None
    return None if tokens else value


def _next_value(tokens: list[str], depth: int) -> Any:
    token = tokens.pop()
    if depth == 0:
        raise ValueError("too deep")
    if token == "(":
        return _members(tokens, ")", lambda: _next_value(tokens, depth - 1))
    if token == "{":
        return dict(_members(tokens, "}", lambda: _next_pair(tokens, depth - 1)))
    if token.isascii() and token.isdigit() and len(token) <= 20:
        return int(token)
    if token in ("=", ",", ")", "}"):
        raise ValueError("no value")
    return token[1:-1] if token.startswith('"') else token


def _members(tokens: list[str], end: str, member: Any) -> list[Any]:
    found: list[Any] = []
    while tokens[-1] != end:
        found.append(member())
        if tokens[-1] == ",":
            tokens.pop()
        elif tokens[-1] != end:
            raise ValueError("no comma")
    tokens.pop()
    return found


def _next_pair(tokens: list[str], depth: int) -> tuple[str, Any]:
    key = tokens.pop()
    if tokens.pop() != "=" or not key.startswith('"'):
        raise ValueError("no pair")
    return key[1:-1], _next_value(tokens, depth)


# ---- recordings ----------------------------------------------------------------------------------
def recognises(document: bytes) -> bool:
    """Say whether this is what `ioreg` printed, as text or as a plist."""
    start = document.lstrip()[:4096]
    return start.startswith((b"+-o ", b"<plist")) or (start.startswith(b"<?xml") and b"<plist" in start)


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings, one reading a document, in the order given; raises NotARecording and nothing else."""
    found = []
    for index, document in enumerate(documents):
        parse = parse_plist if document.lstrip().startswith(b"<") else parse_text
        clients = parse(document)
        if clients is None:
            found.append(GpuReading(index * PACE_S, unknown=dict.fromkeys(pids, NO_SOURCE)))
        else:
            found.append(reading_of(index * PACE_S, clients, pids))
    return found

"""A made /proc and /sys with processes that hold devices, for readers that take the directories as arguments."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def device(major: int, minor: int) -> int:
    """The number of a device; 0 on Windows, which has no such numbers and skips what needs them."""
    return 0 if sys.platform == "win32" else os.makedev(major, minor)


RENDER = device(226, 128)


class MadeProc:
    """Directories as Linux shows them; a device is a dangling link that names its number."""

    def __init__(self, root: Path) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        (self.proc / "self/fdinfo").mkdir(parents=True)
        (self.sys / "class/drm/card0").mkdir(parents=True)
        (self.proc / "devices").write_text(
            "Character devices:\n  1 mem\n226 drm\n507 nvidia-uvm\n508 kfd\n\nBlock devices:\n"
        )
        (self.proc / "misc").write_text("183 hw_random\n 61 dxg\n")
        self.living: set[int] = set()
        self.ran: dict[int, int] = {}
        self.searched: list[int] = []

    def process(self, pid: int, *, thread: int | None = None) -> Path:
        self.living.add(pid)
        base = self.proc / str(pid)
        (base / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        if thread is not None:
            base = base / "task" / str(thread)
        for name in ("fd", "fdinfo"):
            (base / name).mkdir(parents=True, exist_ok=True)
        return base

    def holds(
        self, pid: int, fd: int, device: int | None = RENDER, text: str = "", *, thread: int | None = None
    ) -> Path:
        base = self.process(pid, thread=thread)
        target = "pipe:[5]" if device is None else f"char:{os.major(device)}:{os.minor(device)}"
        (base / "fd" / str(fd)).symlink_to(target)
        (base / "fdinfo" / str(fd)).write_text("pos:\t0\nino:\t9\n" + text)
        return base / "fdinfo" / str(fd)

    def driver(self, name: str, device: int = RENDER, **power: object) -> Path:
        folder = self.sys / f"dev/char/{os.major(device)}:{os.minor(device)}/device"
        (folder / "power").mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(f"../../drivers/{name}")
        for key, value in power.items():
            (folder / "power" / key).write_text(f"{value}\n")
        return folder / "power"

    def device_of(self, name: str, directory: int) -> int | None:
        self.searched.append(directory)
        kind, _, number = os.readlink(name, dir_fd=directory).partition(":")
        if kind != "char":
            return None
        major, minor = map(int, number.split(":"))
        return device(major, minor)

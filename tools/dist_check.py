"""Build every distribution, then use them as a stranger would: `hatch run dist:check`, or with --quick on one Python.

1. A wheel and an sdist of each package into ./dist, checked by twine and by `dist_content`.
2. A wheel built from each sdist, outside the repository, has the same files with the same content.
3. On each Python: the SDK's wheel alone without an index, then all four wheels in an empty environment (`dist_use`).

Exit codes: 0 all holds, 1 something does not, 2 wrong use, 3 could not tell: a Python that was asked for is not there,
or the kit could not measure. Nothing is uploaded, and nothing outside ./dist and a temporary folder is written.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tools.dist_content import MEMBERS, wheel_faults
from tools.dist_use import Fault, run, use_everything, use_sdk_alone

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13")


def build(version: str) -> tuple[list[Path], list[Path]]:
    """Build all members into dist/; its wheels and its sdists, in the order of `MEMBERS`."""
    # Not `--clean`: each member would wipe the files of those before.
    shutil.rmtree(DIST, ignore_errors=True)
    # -e: hatch looks for the members of the environment it runs in, and this one has none.
    run(["hatch", "-e", "default", "build", "--all"], cwd=ROOT)
    wheels = [DIST / f"{module}-{version}-py3-none-any.whl" for module in MEMBERS.values()]
    sdists = [DIST / f"{module}-{version}.tar.gz" for module in MEMBERS.values()]
    found, wanted = {path.name for path in DIST.iterdir()}, {path.name for path in [*wheels, *sdists]}
    if found != wanted:
        raise Fault(f"dist/: must hold {', '.join(sorted(wanted))}; found {', '.join(sorted(found))}")
    return wheels, sdists


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel by name; what only lists them (RECORD) is left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def check_contents(wheels: Sequence[Path], sdists: Sequence[Path], version: str) -> None:
    """Check what each archive holds; links in an sdist are refused, because installers refuse them."""
    run(["twine", "check", "--strict", *wheels, *sdists], cwd=ROOT)
    schemas = [path.name for path in (ROOT / "schemas").glob("*.schema.json")]
    licence = (ROOT / "LICENSE").read_bytes()
    faults = []
    for name, wheel in zip(MEMBERS, wheels, strict=True):
        faults += [f"{wheel.name}: {one}" for one in wheel_faults(name, version, contents(wheel), licence, schemas)]
    for sdist in sdists:
        with tarfile.open(sdist) as archive:
            faults += [f"{sdist.name}: {one.name}: must be a file; found a link" for one in archive if one.issym()]
    if faults:
        raise Fault("\n".join(faults))


def check_sdists(wheels: Sequence[Path], sdists: Sequence[Path], tmp: Path) -> None:
    """Build a wheel from each sdist, outside the repository; it must equal the one built from the tree."""
    for wheel, sdist in zip(wheels, sdists, strict=True):
        shutil.copy(sdist, tmp)
        run(["uv", "build", "--quiet", "--wheel", "--out-dir", tmp / "again", tmp / sdist.name], cwd=tmp)
        again, first = contents(tmp / "again" / wheel.name), contents(wheel)
        differing = sorted(name for name in again.keys() | first.keys() if again.get(name) != first.get(name))
        if differing:
            raise Fault(f"{sdist.name}: must build the wheel of the tree; found {', '.join(differing)} differing")


def find_python(wanted: str) -> Path | None:
    """Return an interpreter of a version such as 3.12: from uv's own search, else from pyenv's folder, else None."""
    found = subprocess.run(
        ["uv", "python", "find", "--no-python-downloads", "--no-project", "--system", wanted],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode == 0:
        return Path(found.stdout.strip())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next(iter(sorted(pyenv.glob(f"versions/{wanted}.*/bin/python{wanted}"), reverse=True)), None)


def python_version(text: str) -> str:
    """Return a version such as 3.12 as it is. Raises ArgumentTypeError for anything else."""
    if not re.fullmatch(r"3\.\d{1,3}", text):
        raise argparse.ArgumentTypeError(f"must be a version such as 3.12; found {text[:20]!r}")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Check the distributions; the exit code."""
    parser = argparse.ArgumentParser(prog="hatch run dist:check", description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="only on the Python that runs this, and one runner judged")
    told = "only on this Python; may be repeated"
    parser.add_argument("--python", action="append", type=python_version, metavar="3.N", help=told)
    parser.add_argument("--build-only", action="store_true", help="build and check the archives, install nothing")
    asked = parser.parse_args(argv)
    versions = asked.python or ([".".join(platform.python_version_tuple()[:2])] if asked.quick else list(PYTHONS))
    try:
        untold = check([] if asked.build_only else versions, quick=asked.quick)
    except Fault as fault:
        print(f"dist:check: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for sentence in untold:
        print(f"dist:check: could not tell: {sentence}", file=sys.stderr)
    return 3 if untold else 0


def check(versions: Sequence[str], *, quick: bool) -> list[str]:
    """Run every step; what could not be told. Raises Fault for what does not hold."""
    version, untold, used = (ROOT / "VERSION").read_text("utf-8").strip(), [], 0
    wheels, sdists = build(version)
    for path in [*wheels, *sdists]:
        print(f"built      {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}  {path.name}", flush=True)
    check_contents(wheels, sdists, version)
    with tempfile.TemporaryDirectory(prefix="oarbank-dist-") as folder:
        tmp = Path(folder).resolve()
        (tmp / "sdists").mkdir()
        check_sdists(wheels, sdists, tmp / "sdists")
        print("same       each sdist builds the wheel of the tree", flush=True)
        for wanted in versions:
            python = find_python(wanted)
            if python is None:
                untold.append(f"Python {wanted}: must be on PATH or in pyenv; found none")
                continue
            place = tmp / wanted
            place.mkdir()
            use_sdk_alone(python, wheels[0], version, place / "sdk")
            found = use_everything(python, wheels, version, place / "all", quick=quick)
            untold += [f"Python {wanted}: {one}" for one in found]
            used += 1
            print(f"used       Python {wanted}: {python}", flush=True)
    if versions and not used:
        raise Fault(f"Python {', '.join(versions)}: one at least must be there; found none")
    return untold


if __name__ == "__main__":
    raise SystemExit(main())

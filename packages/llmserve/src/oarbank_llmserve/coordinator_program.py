"""The module's coordinator as a program: its own bundle's files in, verbs served until the host is done.

It reads the manifest and the goldens of the folder it was started from, which never change under it, and nothing else.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from oarbank_llmserve.coordinator import Bundle, verbs
from oarbank_sdk.module import guard, serve


def main(folder: str) -> int:
    """Serve the module in `folder`; the exit status."""
    guard()
    try:
        manifest = tomllib.loads(Path(folder, "oarbank-module.toml").read_text("utf-8"))
        bundle = read_bundle(Path(folder), manifest)
    except (OSError, ValueError, KeyError) as fault:
        print(f"{folder}: must be a module's folder that can be read; {fault}", file=sys.stderr)
        return 3
    return serve(verbs(bundle), module_id=bundle.module_id, version=manifest["module"]["version"])


def read_bundle(folder: Path, manifest: dict) -> Bundle:
    """What the verbs need to know. Raises OSError, ValueError and KeyError for a folder that is not whole."""
    about, over = manifest["module"], manifest["results"]["digest"]
    goldens = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob(manifest["goldens"]["fixtures"]))]
    return Bundle(about["id"], about["compat"], over["version"], tuple(over["over"]), tuple(goldens))

"""What a distribution must hold: its licence, types, schemas, a page that reads well on an index.

Pure: `dist_check` opens the archives; here is decided what is wrong with them, in sentences. A link in a package's
README must be absolute or lead to a heading of the same page: an index shows the page alone, so others lead nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email import message_from_bytes

MEMBERS = {
    "oarbank-sdk": "oarbank_sdk",
    "oarbank-agent-check": "oarbank_agent_check",
    "oarbank-conformkit": "oarbank_conformkit",
    "oarbank-llmserve": "oarbank_llmserve",
}
# Files of a package that are no Python and that it does not work without, as the wheel names them.
NEEDED = {
    "oarbank-sdk": ("oarbank_sdk/templates/runner/runner.py", "oarbank_sdk/templates/runner/oarbank-module.toml"),
    "oarbank-agent-check": (),
    "oarbank-conformkit": ("oarbank_conformkit/rules.toml",),
    "oarbank-llmserve": ("oarbank_llmserve/bundle/oarbank-module.toml", "oarbank_llmserve/bundle/LICENSE"),
}
# Whatever a checkout collects and nobody should get.
LITTER = re.compile(r"(^|/)(__pycache__|\.pytest_cache|\.hypothesis|tests?)/|\.(pyc|orig|rej|log)$|(^|/)\.DS_Store$")
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)[^)]*\)|<img[^>]*\bsrc=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def relative_links(page: str) -> list[str]:
    """Return the targets of a page's links that lead nowhere when the page stands alone."""
    targets = ["".join(found) for found in LINK.findall(CODE.sub("", page))]
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|#", target)]


def wheel_faults(
    name: str, version: str, files: Mapping[str, bytes], licence: bytes, schemas: Iterable[str]
) -> list[str]:
    """Return what is wrong with a wheel: `files` are its members, `schemas` the file names the SDK must ship."""
    package, info = MEMBERS[name], f"{MEMBERS[name]}-{version}.dist-info"
    wanted = [f"{package}/__init__.py", f"{package}/py.typed", f"{info}/METADATA", *NEEDED[name]]
    shipped = {f"{package}/schemas/{schema}" for schema in schemas} if name == "oarbank-sdk" else set()
    missing = [one for one in [*wanted, *sorted(shipped)] if one not in files]
    faults = [f"{one}: must be in the wheel; found no such file" for one in missing]
    found = {one for one in files if one.startswith("oarbank_sdk/schemas/")}
    faults += [f"{one}: must be a schema of schemas/; found another file" for one in sorted(found - shipped)]
    faults += [f"{one}: must not be shipped" for one in files if LITTER.search(one)]
    outside = {one.partition("/")[0] for one in files} - {package, info}
    faults += [f"{one}: must not be installed beside {package}" for one in sorted(outside)]
    if files.get(f"{info}/licenses/LICENSE") != licence:
        faults.append(f"{info}/licenses/LICENSE: must be the repository's LICENSE; found none or another")
    return faults + metadata_faults(name, version, files.get(f"{info}/METADATA", b""))


def metadata_faults(name: str, version: str, metadata: bytes) -> list[str]:
    """Return what is wrong with the METADATA of a wheel, its README included."""
    told = message_from_bytes(metadata)
    wanted = {
        "Name": name,
        "Version": version,
        "License-Expression": "Apache-2.0",
        "Requires-Python": ">=3.11",
        "Description-Content-Type": "text/markdown",
    }
    faults = [f"{key}: must be {value}; found {told[key]}" for key, value in wanted.items() if told[key] != value]
    page = metadata.decode("utf-8", "replace").partition("\n\n")[2]
    if not page.startswith(f"# {name}\n"):
        faults.append(f"README: must begin with '# {name}'; found {page[:40]!r}")
    links = relative_links(page)
    return faults + [f"README: a link must be absolute, an index shows the page alone; found {one}" for one in links]

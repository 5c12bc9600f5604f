"""The level that a certificate's file grants a module's work here and now.

For whoever takes `@FILE` where a level may stand. It reads the file and the machine; `certificate` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarbank_agent_check import certificate
from oarbank_agent_check.host_facts import host_facts, work_facts
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.manifest import file_bytes
from oarbank_agent_check.jobs.module import Module, Stage
from oarbank_sdk.contracts.judge import judge


class NotCertified(Exception):
    """The certificate is void here, or holds no level; the text is one line for people."""


def certified_level(
    path: Path, host: Host, module: Module, folder: Path, stage: Stage, payload: Mapping[str, Any], data: Path
) -> float:
    """Give the level. Raises `NotCertified`, and `UsageError` for a file that can't be read or is no certificate.

    `folder` is the module's, `data` the module's own with its models.
    """
    text = file_bytes(path, str(path))
    found = certificate.level_from(text, str(path), host_facts(host), work_facts(module, folder, stage, payload, data))
    if isinstance(found, float):
        return found
    raise NotCertified(found) if judge(certificate.KIND, text).valid else UsageError(found)

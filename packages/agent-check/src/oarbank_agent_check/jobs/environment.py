"""The environment of a runner: exactly what the contract lists, nothing inherited from whoever starts it.

Pure: facts in, a mapping out. A runner that works only because of a variable of its author's shell must be seen to
fail.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module

LOCALES = ("C", "en_US.UTF-8")
"""LANG and LC_ALL of a golden's first and second run."""

_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def run_environment(
    module: Module, host: Host, *, workdir: str, data: str, attempt: str, locale: str = LOCALES[0]
) -> dict[str, str]:
    """Return the environment of `run`; the paths are absolute."""
    tmp = f"{workdir}/tmp"
    return {
        **_shared(module, host, data=data, tmp=tmp, home=workdir, locale=locale),
        "OARBANK_WORKDIR": workdir,
        "OARBANK_ATTEMPT_ID": attempt,
        **_granted(f"{workdir}/.grants"),
        **module.env,
    }


def doctor_environment(module: Module, host: Host, *, data: str, grants: str) -> dict[str, str]:
    """Return the environment of `doctor`, which has no workdir."""
    return {
        **_shared(module, host, data=data, tmp=f"{data}/tmp", home=data, locale=LOCALES[0]),
        **_granted(grants),
        **module.env,
    }


def _shared(module: Module, host: Host, *, data: str, tmp: str, home: str, locale: str) -> Mapping[str, str]:
    return {
        "OARBANK_TMP": tmp,
        "TMPDIR": tmp,
        "OARBANK_MODULE_DATA": data,
        "OARBANK_PLATFORM": host.platform,
        "OARBANK_MODULE": module.short,
        "OARBANK_PROTOCOL": "1",
        "OARBANK_DISABLED_SERVICES": "",
        "PYTHONUTF8": "1",
        "PATH": f"{posixpath.dirname(host.python)}:{_SYSTEM_PATH}",
        "HOME": home,
        "LANG": locale,
        "LC_ALL": locale,
    }


def _granted(folder: str) -> Mapping[str, str]:
    return {
        "OARBANK_SETTINGS_FILE": f"{folder}/settings.json",
        "OARBANK_TOOLS_FILE": f"{folder}/tools.json",
        "OARBANK_FOLDERS_FILE": f"{folder}/folders.json",
    }

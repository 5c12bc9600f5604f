"""Judge what stands in the module's directory: manifest, goldens and fixtures. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from oarbank_conformkit.bundle import Bundle
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.goldens import BadGolden
from oarbank_conformkit.module import FIXTURES, MANIFEST, Module


def judge_bundle(bundle: Bundle) -> list[Check]:
    """Return the checks of everything that can be read without starting the runner."""
    checks = [_valid(bundle)]
    if bundle.module is not None:
        checks += _goldens(bundle, bundle.module)
    if bundle.fixtures is not None:
        checks += _fixtures(bundle.fixtures)
    if bundle.module is not None:
        checks += _duty_spec(bundle.module, bundle.fixtures)
    return checks


def _check(rule: str, name: str, status: Status, detail: str) -> Check:
    return check("manifest", rule, name, status, detail)


def _valid(bundle: Bundle) -> Check:
    name = f"{MANIFEST} keeps its contract"
    if not bundle.manifest_faults:
        return _check("manifest.valid", name, "pass", "")
    told = "; ".join(fault.line("") for fault in bundle.manifest_faults[:3])
    more = f"; and {len(bundle.manifest_faults) - 3} more" if len(bundle.manifest_faults) > 3 else ""
    return _check("manifest.valid", name, "fail", f"{told}{more}. Correct it; the runner was not judged.")


def _goldens(bundle: Bundle, module: Module) -> Iterator[Check]:
    if module.goldens is None:
        detail = "/goldens/fixtures: must point at one golden or more, or nothing proves the results; found none"
        yield _check("manifest.goldens", "goldens are there", "fail", detail)
        return
    if not bundle.goldens:
        detail = f"/goldens/fixtures: must find at least one file; {module.goldens} finds none"
        yield _check("manifest.goldens", "goldens are there", "fail", detail)
        return
    for bad in bundle.goldens:
        if isinstance(bad, BadGolden):
            yield _check("manifest.goldens", f"{bad.path} is a golden", "fail", bad.fault)
    usable = sum(not isinstance(one, BadGolden) for one in bundle.goldens)
    if usable == len(bundle.goldens):
        yield _check("manifest.goldens", "goldens are there", "pass", f"{usable} of them")


def _fixtures(fixtures: Fixtures) -> Iterator[Check]:
    name = f"{fixtures.shown} can be read"
    if fixtures.file_fault is not None:
        yield _check("fixture.file", name, "fail", f"{fixtures.file_fault}. Nothing in it was run.")
        return
    yield _check("fixture.file", name, "pass", "")
    for entry in fixtures.entry_faults:
        told = "; ".join(fault.line("") for fault in entry.faults[:3])
        detail = f"{fixtures.shown}: {told}. Correct the entry; the others are judged."
        yield _check("fixture.entry", f"{entry.entry}: fixture", "fail", detail)
    for fault in fixtures.unknown_keys:
        yield _check("fixture.known_keys", f"{fixtures.shown} holds known keys", "warn", fault.line(""))
    for key in fixtures.not_run:
        detail = f"/{key}: this version of the kit reads {key} and does not run them"
        yield _check("fixture.used", f"{fixtures.shown}: {key} are run", "warn", detail)


def _duty_spec(module: Module, fixtures: Fixtures | None) -> Iterator[Check]:
    name = "cooperative_throttle is proved by a duty spec"
    if not module.throttles:
        return
    if fixtures is not None and (fixtures.has_duty_specs or fixtures.file_fault is not None):
        yield _check("manifest.duty_spec", name, "pass", f"{len(fixtures.duty_specs)} of them can be used")
        return
    detail = (
        f"{FIXTURES} must list duty_specs, or nobody has seen the duty held; found none. List one task that runs long."
    )
    yield _check("manifest.duty_spec", name, "warn", detail)

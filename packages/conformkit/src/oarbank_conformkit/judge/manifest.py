"""Judge what stands in the module's directory: manifest, goldens and fixtures. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from oarbank_agent_check.jobs.module import FIXTURES, MANIFEST, Module
from oarbank_conformkit.bundle import Bundle
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.faults import sentence
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.goldens import BadGolden
from oarbank_sdk.contracts.faults import Fault

_HOW = "Write one with any digest of 64 hex digits; the kit then says the right one."


def judge_bundle(bundle: Bundle) -> list[Check]:
    """Return the checks of everything that can be read without starting the runner."""
    checks = [_valid(bundle), *_advice(bundle)]
    if bundle.module is not None:
        checks += [_programs(bundle), *_gpu_use(bundle.module)]
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
    return _check("manifest.valid", name, "fail", f"{sentence(told + more)} Correct it; the runner was not judged.")


def _advice(bundle: Bundle) -> Iterator[Check]:
    for fault in bundle.manifest_warnings:
        rule = "manifest.known_words"
        yield _check(rule, f"{MANIFEST} holds known words", "warn", fault.line(""))
    if bundle.missing_schema is not None:
        detail = (
            f"/results/schema: must be a file in the bundle; found none at {bundle.missing_schema}. "
            "Write it, or take the key out."
        )
        yield _check("manifest.result_schema", "the schema of the results is there", "warn", detail)
    for fault in bundle.missing_params:
        yield _check("manifest.operations", "schemas of operations are there", "warn", f"{fault}. Write it.")


def _programs(bundle: Bundle) -> Check:
    name = "programs that the manifest starts are there"
    if bundle.missing_programs:
        return _check("manifest.programs", name, "fail", sentence("; ".join(bundle.missing_programs)) + " Correct it.")
    return _check("manifest.programs", name, "pass", "")


def _gpu_use(module: Module) -> Iterator[Check]:
    if "cooperative_throttle" in module.capabilities:
        name = "cooperative_throttle goes with the use of a GPU"
        if module.throttles:
            yield _check("manifest.gpu_use", name, "pass", module.gpu_use)
        else:
            detail = (
                '/runner/gpu/use: must be shared or exclusive to earn a duty; found "none". '
                "Say so, or leave it if threads alone are meant."
            )
            yield _check("manifest.gpu_use", name, "warn", detail)


def _goldens(bundle: Bundle, module: Module) -> Iterator[Check]:
    if module.goldens is None:
        detail = (
            "/goldens/fixtures: must point at one golden or more, or nothing proves the results; found none. "
            f'Write [goldens] with fixtures = "goldens/*.json". {_HOW}'
        )
        yield _check("manifest.goldens", "goldens are there", "fail", detail)
        return
    if not bundle.goldens:
        detail = f"/goldens/fixtures: must find at least one file; {module.goldens} finds none. {_HOW}"
        yield _check("manifest.goldens", "goldens are there", "fail", detail)
        return
    for bad in bundle.goldens:
        if isinstance(bad, BadGolden):
            yield _check(
                "manifest.goldens", f"{bad.path} is a golden", "fail", f"{sentence(bad.fault)} Correct the file."
            )
    usable = sum(not isinstance(one, BadGolden) for one in bundle.goldens)
    if usable == len(bundle.goldens):
        yield _check("manifest.goldens", "goldens are there", "pass", f"{usable} of them")


def _fixtures(fixtures: Fixtures) -> Iterator[Check]:
    name = f"{fixtures.shown} can be read"
    if fixtures.file_fault is not None:
        yield _check("fixture.file", name, "fail", f"{sentence(fixtures.file_fault)} Nothing in it was run.")
        return
    yield _check("fixture.file", name, "pass", "")
    for entry in fixtures.entry_faults:
        told = "; ".join(fault.line("") for fault in entry.faults[:3])
        others = "; the others are judged" if fixtures.duty_specs else ""
        detail = f"{fixtures.shown}: {sentence(told)} Correct the entry{others}."
        yield _check("fixture.entry", f"{entry.entry}: fixture", "fail", detail)
    for fault in fixtures.unknown_keys:
        yield _check("fixture.known_keys", f"{fixtures.shown} holds known keys", "warn", _unknown_key(fixtures, fault))
    for key in fixtures.not_run:
        detail = f"/{key}: this version of the kit reads {key} and does not run them"
        yield _check("fixture.used", f"{fixtures.shown}: {key} are run", "warn", detail)


def _unknown_key(fixtures: Fixtures, fault: Fault) -> str:
    meant = _means_duty_specs(fault) and not fixtures.duty_specs
    return fault.line("") + (" Nothing under this key was run, so no duty was measured." if meant else "")


def _means_duty_specs(fault: Fault) -> bool:
    return fault.message.endswith("did you mean duty_specs?")


def _duty_spec(module: Module, fixtures: Fixtures | None) -> Iterator[Check]:
    name = "cooperative_throttle is proved by a duty spec"
    if not module.throttles:
        return
    specs = () if fixtures is None else fixtures.duty_specs
    if any(spec.duty > 0.0 for spec in specs):
        yield _check("manifest.duty_spec", name, "pass", f"{len(specs)} of them can be used")
        return
    if specs:
        detail = "every duty spec has the duty 0, which proves waiting alone. List one with a duty above 0 too."
    else:
        detail = f"no duty was measured: {_no_spec(fixtures)}. List one task that runs long."
    yield _check("manifest.duty_spec", name, "warn", detail)


def _no_spec(fixtures: Fixtures | None) -> str:
    """Why there is no duty spec that can be used."""
    if fixtures is None:
        return f"{FIXTURES} must list duty_specs; found no such file"
    if fixtures.file_fault is not None:
        return f"{fixtures.shown} must list duty_specs; found a file that cannot be read"
    what = "none that can be used" if fixtures.has_duty_specs else "no such key"
    for fault in fixtures.unknown_keys:
        if _means_duty_specs(fault):
            what = f"the key {fault.pointer[1:]}, which nobody reads"
    return f"{fixtures.shown} must list duty_specs; found {what}"

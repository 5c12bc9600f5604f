"""The shape of the house: who may import whom, what pure files may touch, how large a file may be."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "sdk": "oarbank_sdk",
    "agent-check": "oarbank_agent_check",
    "conformkit": "oarbank_conformkit",
    "llmserve": "oarbank_llmserve",
}
ARROWS = {
    "oarbank_sdk": set(),
    "oarbank_agent_check": {"oarbank_sdk"},
    "oarbank_conformkit": {"oarbank_sdk", "oarbank_agent_check"},
    "oarbank_llmserve": {"oarbank_sdk"},
}
WORLD = {"asyncio", "ctypes", "multiprocessing", "os", "pathlib", "psutil", "select", "shutil", "signal", "socket",
         "subprocess", "sys", "tempfile", "threading", "time"}  # fmt: skip
# Files that decide: time and readings come in as arguments. A module or a whole folder.
PURE = [
    "sdk/src/oarbank_sdk/canonical.py",
    "sdk/src/oarbank_sdk/events.py",
    "sdk/src/oarbank_sdk/module_rpc.py",
    "sdk/src/oarbank_sdk/paths.py",
    "agent-check/src/oarbank_agent_check/readings.py",
    "agent-check/src/oarbank_agent_check/gpu_readings.py",
    "agent-check/src/oarbank_agent_check/counters.py",
    "agent-check/src/oarbank_agent_check/inputs.py",
    "agent-check/src/oarbank_agent_check/actions.py",
    "agent-check/src/oarbank_agent_check/admission.py",
    "agent-check/src/oarbank_agent_check/budget.py",
    "agent-check/src/oarbank_agent_check/check.py",
    "agent-check/src/oarbank_agent_check/core.py",
    "agent-check/src/oarbank_agent_check/journal.py",
    "agent-check/src/oarbank_agent_check/duty_reports.py",
    "agent-check/src/oarbank_agent_check/job_view.py",
    "agent-check/src/oarbank_agent_check/outcome.py",
    "agent-check/src/oarbank_agent_check/jobs/control_document.py",
    "agent-check/src/oarbank_agent_check/jobs/environment.py",
    "agent-check/src/oarbank_agent_check/jobs/module.py",
    "agent-check/src/oarbank_agent_check/jobs/specs.py",
    "agent-check/src/oarbank_agent_check/settle.py",
    "agent-check/src/oarbank_agent_check/guard_chart.py",
    "agent-check/src/oarbank_agent_check/guard_config.py",
    "agent-check/src/oarbank_agent_check/guard_page.py",
    "agent-check/src/oarbank_agent_check/guard_view.py",
    "agent-check/src/oarbank_agent_check/history.py",
    "agent-check/src/oarbank_agent_check/jobs/coordinator.py",
    "agent-check/src/oarbank_agent_check/presence.py",
    "agent-check/src/oarbank_agent_check/pressure.py",
    "agent-check/src/oarbank_agent_check/toml_lines.py",
    "sdk/src/oarbank_sdk/contracts/guard_rules.py",
    "agent-check/src/oarbank_agent_check/bets.py",
    "agent-check/src/oarbank_agent_check/windows.py",
    "agent-check/src/oarbank_agent_check/certify.py",
    "agent-check/src/oarbank_agent_check/certificate.py",
    "agent-check/src/oarbank_agent_check/host_facts_parse.py",
    "agent-check/src/oarbank_agent_check/sweep_view.py",
    "agent-check/src/oarbank_agent_check/state.py",
    "agent-check/src/oarbank_agent_check/sources/drm_parse.py",
    "agent-check/src/oarbank_agent_check/sources/kfd_parse.py",
    "agent-check/src/oarbank_agent_check/sources/recording_parse.py",
    "agent-check/src/oarbank_agent_check/sources/plain_recording_parse.py",
    "agent-check/src/oarbank_agent_check/sources/ticks.py",
    "agent-check/src/oarbank_agent_check/sources/cpu_threads_parse.py",
    "agent-check/src/oarbank_agent_check/watch_view.py",
    "agent-check/src/oarbank_agent_check/sources/json_recording.py",
    "agent-check/src/oarbank_agent_check/sources/point_samples.py",
    "agent-check/src/oarbank_agent_check/sources/nvml_parse.py",
    "agent-check/src/oarbank_agent_check/sources/nvml_accounting.py",
    "agent-check/src/oarbank_agent_check/sources/ioreg_parse.py",
    "agent-check/src/oarbank_agent_check/sources/pdh_parse.py",
    "agent-check/src/oarbank_agent_check/sources/cpu_recording_parse.py",
    "conformkit/src/oarbank_conformkit/judge",
    "conformkit/src/oarbank_conformkit/evidence_protocol.py",
    "conformkit/src/oarbank_conformkit/plan.py",
    "conformkit/src/oarbank_conformkit/render",
    "conformkit/src/oarbank_conformkit/report.py",
    "conformkit/src/oarbank_conformkit/result_schema.py",
    "conformkit/src/oarbank_conformkit/rule_list.py",
    "conformkit/src/oarbank_conformkit/secrets_granted.py",
    "llmserve/src/oarbank_llmserve/engines/mlx_parts.py",
    "llmserve/src/oarbank_llmserve/engines/mlx_pieces.py",
    "llmserve/src/oarbank_llmserve/job.py",
    "llmserve/src/oarbank_llmserve/payload.py",
    "llmserve/src/oarbank_llmserve/limits.py",
    "llmserve/src/oarbank_llmserve/coordinator.py",
    "llmserve/src/oarbank_llmserve/gguf.py",
    "llmserve/src/oarbank_llmserve/appetite.py",
    "llmserve/src/oarbank_llmserve/prompts_text.py",
    "llmserve/src/oarbank_llmserve/text.py",
    "llmserve/src/oarbank_llmserve/chunks.py",
    "llmserve/src/oarbank_llmserve/sampling.py",
    "llmserve/src/oarbank_llmserve/slices.py",
    "agent-check/src/oarbank_agent_check/bets.py",
    "agent-check/src/oarbank_agent_check/certify.py",
    "agent-check/src/oarbank_agent_check/windows.py",
    "conformkit/src/oarbank_conformkit/limits.py",
    "conformkit/src/oarbank_conformkit/steps.py",
    "llmserve/src/oarbank_llmserve/attempt.py",
    "agent-check/src/oarbank_agent_check/render.py",
    "conformkit/src/oarbank_conformkit/checks.py",
    "conformkit/src/oarbank_conformkit/fixtures.py",
    "conformkit/src/oarbank_conformkit/goldens.py",
    "conformkit/src/oarbank_conformkit/shares.py",
    "conformkit/src/oarbank_conformkit/timeline.py",
    "llmserve/src/oarbank_llmserve/result.py",
    "sdk/src/oarbank_sdk/contracts/faults.py",
    "sdk/src/oarbank_sdk/contracts/journal_rules.py",
    "sdk/src/oarbank_sdk/contracts/manifest_rules.py",
    "sdk/src/oarbank_sdk/contracts/module_schema.py",
    "sdk/src/oarbank_sdk/contracts/rules.py",
    "agent-check/src/oarbank_agent_check/certificate.py",
    "agent-check/src/oarbank_agent_check/guard_chart.py",
    "agent-check/src/oarbank_agent_check/guard_config.py",
    "agent-check/src/oarbank_agent_check/guard_page.py",
    "agent-check/src/oarbank_agent_check/guard_view.py",
    "agent-check/src/oarbank_agent_check/history.py",
    "agent-check/src/oarbank_agent_check/host_facts_parse.py",
    "agent-check/src/oarbank_agent_check/presence.py",
    "agent-check/src/oarbank_agent_check/pressure.py",
    "agent-check/src/oarbank_agent_check/sweep_view.py",
    "agent-check/src/oarbank_agent_check/toml_lines.py",
    "sdk/src/oarbank_sdk/contracts/certificate_rules.py",
    "sdk/src/oarbank_sdk/contracts/guard_rules.py",
    "sdk/src/oarbank_sdk/contracts/guard_line_rules.py",
]
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


def own_code() -> list[Path]:
    return [path for path in tracked("*.py") if "_generated" not in path.parts]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("folder", PACKAGES)
def test_only_the_arrows_of_the_design(folder):
    module = PACKAGES[folder]
    files = tracked(f"packages/{folder}/*.py")
    assert files
    wrong = {
        str(path.relative_to(ROOT)): sorted(bad)
        for path in files
        if (bad := imported(path) & set(ARROWS) - ARROWS[module] - {module})
    }
    assert wrong == {}


def test_the_kit_imports_nothing_of_what_it_judges():
    assert not any("oarbank_llmserve" in path.read_text() for path in tracked("packages/conformkit/*.py"))


@pytest.mark.parametrize("place", PURE)
def test_files_that_decide_touch_nothing(place):
    target = ROOT / "packages" / place
    files = [target] if target.suffix else sorted(target.rglob("*.py"))
    assert files
    touched = {str(path.relative_to(ROOT)): sorted(found) for path in files if (found := imported(path) & WORLD)}
    assert touched == {}


def test_no_file_is_over_400_lines():
    long = {str(path): count for path in own_code() if (count := len(path.read_text("utf-8").splitlines())) > 400}
    assert long == {}


def test_every_module_has_a_name_that_says_something():
    assert [path for path in own_code() if path.stem in SAYS_NOTHING] == []


def test_every_module_says_what_it_is_for():
    code = {path: path.read_text("utf-8") for path in own_code() if path.is_relative_to(ROOT / "packages")}
    silent = [str(path) for path, text in code.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert silent == []


def projects() -> dict[str, dict]:
    return {
        folder: tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())["project"]
        for folder in PACKAGES
    }


def test_every_package_carries_the_licence_and_its_types():
    licence = (ROOT / "LICENSE").read_bytes()
    for folder, module in PACKAGES.items():
        assert (ROOT / "packages" / folder / "LICENSE").read_bytes() == licence
        assert (ROOT / "packages" / folder / "src" / module / "py.typed").exists()


def test_members_ask_for_each_other_in_a_range_that_holds_this_version():
    version = Version((ROOT / "VERSION").read_text().strip())
    upper = f"<{version.major}.{version.minor + 1}"
    for folder, project in projects().items():
        for requirement in map(Requirement, project["dependencies"]):
            if requirement.name.startswith("oarbank-"):
                assert version in requirement.specifier, (folder, requirement)
                assert upper in str(requirement.specifier), (folder, requirement)


def test_the_sdk_depends_on_nothing():
    assert projects()["sdk"]["dependencies"] == []


def test_tools_are_pinned_once():
    hatch = (ROOT / "hatch.toml").read_text()
    pins = (ROOT / "constraints.txt").read_text()
    assert "llama-cpp-python==0.3.36" in hatch
    assert "llama-cpp-python==0.3.36" in pins

"""Draw docs/img/duty-timeline.svg from a real run of the reference module: `hatch run picture`.

A busy machine keeps a runner below its duty, and a picture of that would show the machine: then nothing is written.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from oarbank_agent_check.jobs.host import this_host
from oarbank_conformkit import bundle
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.render.timeline import svg
from oarbank_conformkit.report import document
from oarbank_conformkit.timeline import timeline

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "img" / "duty-timeline.svg"
HELD = 0.9
"""Part of the duty that must have been held."""


def main() -> int:
    module = bundle.read(str(ROOT / "packages" / "llmserve"))
    report = conduct(module, this_host(), kit=version("oarbank-conformkit"), only=["duty"])
    if not report.ok or not report.duty_runs:
        wrong = next((one for one in report.checks if one.status in ("fail", "unknown")), None)
        print(f"picture: the reference module must conform; found {wrong}. Run `hatch run conform`.", file=sys.stderr)
        return 1
    run, numbers = report.duty_runs[0], document(report)["duty_specs"][0]
    found, held = timeline(run), numbers["measured"]["share"]
    if found is None or held is None or held < HELD * run.spec.duty:
        print(f"picture: must hold {run.spec.duty:g}; found {held} on a busy machine. Try later.", file=sys.stderr)
        return 3
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(svg(found, "duty-timeline", alone=True) + "\n", encoding="utf-8", newline="\n")
    print(f"{PICTURE.relative_to(ROOT)}: asked {run.spec.duty:g}, held {held:.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

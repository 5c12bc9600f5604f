"""An honest coordinator in one file, for the stand-in's runner. Mutants subclass it and break one rule each.

It runs inside a bundle, beside `coordinator.py`. It must keep every rule, or no mutant proves anything.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib

from oarbank_sdk.module import serve

HERE = os.path.dirname(os.path.abspath(__file__))


class CoordinatorStandIn:
    """The coordinator; every answer that a mutant may get wrong is a method."""

    def __init__(self) -> None:
        with open(os.path.join(HERE, "oarbank-module.toml"), "rb") as file:
            self.manifest = tomllib.load(file)
        with open(os.path.join(HERE, "goldens", "selftest.json"), encoding="utf-8") as file:
            self.golden = json.load(file)

    def main(self) -> int:
        about = self.manifest["module"]
        return serve(self.verbs(), module_id=about["id"], version=about["version"])

    def verbs(self) -> dict:
        return {
            "params.check": self.params_check,
            "job.plan": lambda params: {"jobs": []},
            "spec.build": self.spec_build,
            "result.evaluate": lambda params: {"verdict": "accept", "reason": "ok"},
            "golden.list": self.golden_list,
            "op.plan": lambda params: {"summary": "", "targets": [], "effects": []},
            "op.apply": self.op_apply,
        }

    def params_check(self, params: dict) -> dict:
        if params.get("params", {}).get("units", 1) < 1:
            return {"ok": False, "errors": [{"path": "/units", "message": "must be 1 or more"}]}
        return {"ok": True, "normalized_params": params.get("params", {}), "errors": []}

    def spec_build(self, params: dict) -> dict:
        jobs = params.get("jobs", [])
        return {"specs": [{"key_inputs": job["key_inputs"], "stages": self.stages(job)} for job in jobs]}

    def stages(self, job: dict) -> list:
        return [{"stage": "selftest", "payload": job["key_inputs"], "datasets": [], "mounts": {}}]

    def golden_list(self, params: dict) -> dict:
        golden = {key: self.golden[key] for key in ("name", "key_inputs", "datasets", "expected")}
        return {"goldens": [{**golden, "stages": ["selftest"]}]}

    def op_apply(self, params: dict) -> dict:
        effects = [{"kind": "jobs.enqueue", "args": {"campaign_id": "c_stand_in", "jobs": []}}]
        return {"effects": effects, "response": "toast", "message": "queued", "errors": []}


if __name__ == "__main__":
    sys.exit(CoordinatorStandIn().main())

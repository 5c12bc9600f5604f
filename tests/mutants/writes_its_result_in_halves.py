"""Breaks the result's wholeness: it writes into result.json itself, in two pieces."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn

BREAKS = {"golden.whole"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def write_result(self) -> None:
        whole, self.args.out = self.args.out, self.args.out + ".whole"
        super().write_result()
        with open(self.args.out, encoding="utf-8") as file:
            text = file.read()
        self.args.out = whole
        with open(self.args.out, "w", encoding="utf-8") as file:
            file.write(text[:20])
            file.flush()
            time.sleep(0.3)
            file.write(text[20:])


if __name__ == "__main__":
    sys.exit(Runner().main())

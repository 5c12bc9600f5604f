"""The kit proves this runner; needs pytest and oarbank-conformkit, which a checkout of Oarbank installs."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_it_conforms():
    done = subprocess.run(
        [sys.executable, "-m", "oarbank_sdk.cli", "conform", str(HERE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

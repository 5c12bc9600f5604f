"""The runner of this module directory: `python -I llmserve_runner.py run|doctor ...`.

With -I nothing but the interpreter's own packages is on the path. Packages that lie beside this file come first.
"""

import os
import signal
import sys

if sys.argv[1:2] == ["run"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes with a stop, which the runner answers; runner.py marks it
sys.dont_write_bytecode = True  # a module directory is not ours to write to
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from oarbank_llmserve.runner import main  # noqa: E402  (after the path)

if __name__ == "__main__":
    sys.exit(main())

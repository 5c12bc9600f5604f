"""The runner of this module directory: `python -I llmserve_runner.py run|doctor ...`.

With -I nothing but the interpreter's own packages is on the path. Packages that lie beside this file come first, or in
`src` beside it as in a checkout: a copy of this directory runs what it holds, whatever else is installed.
"""

import os
import signal
import sys

if sys.argv[1:2] == ["run"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes with a stop, which the runner answers; runner.py marks it
sys.dont_write_bytecode = True  # a module directory is not ours to write to
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "src")]

from oarbank_llmserve.runner import main  # noqa: E402  (after the path)

if __name__ == "__main__":
    sys.exit(main())

"""The coordinator side of this module directory: `python -I llmserve_module.py`, JSON-RPC on stdin and stdout.

With -I nothing but the interpreter's own packages is on the path. Packages that lie beside this file come first, or in
`src` beside it as in a checkout.
"""

import os
import sys

sys.dont_write_bytecode = True  # a module directory is not ours to write to
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "src")]

from oarbank_llmserve.coordinator_program import main  # noqa: E402  (after the path)

if __name__ == "__main__":
    sys.exit(main(HERE))

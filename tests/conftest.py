"""For all tests: Ctrl-C works in the processes they start, also where whoever runs pytest has it ignored."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)

"""The door of `oarbank-agent-check`; `dispatch` is the program.

Loading the program takes a while, and Ctrl-C may come in the middle of it: nothing is imported here but inside the try.
"""

from __future__ import annotations


def main(argv: list[str] | None = None) -> int:
    """Run the program; its exit code, 130 after a Ctrl-C that nobody else took."""
    try:
        from oarbank_agent_check import dispatch

        return dispatch.main(argv)
    except KeyboardInterrupt:
        return 130

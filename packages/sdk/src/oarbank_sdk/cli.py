"""The door of `oarbank-sdk`; `dispatch` is the program.

Loading the program takes a while, and Ctrl-C may come in the middle of it: nothing is imported here but inside the try.
"""

from __future__ import annotations


def main(argv: list[str] | None = None) -> int:
    """Run the program; its exit code, 130 after a Ctrl-C that nobody else took."""
    try:
        from oarbank_sdk import dispatch

        return dispatch.main(argv)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())

"""`oarbank-llmserve batch|models|module|doctor`: for people. Calls in, an exit status out; arguments.py has what may
be typed.

Exit status: 0 all prompts completed, 1 some were not, 2 wrong use, 3 the backend does not load here or the output
cannot be written, 130 ended by Ctrl-C. Whatever goes wrong is one line on stderr. No rule about jobs, models or duties
is here; each command has a file of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from oarbank_llmserve import arguments
from oarbank_llmserve.usage import INTERRUPTED, UsageError
from oarbank_sdk.outputs import prepare_outputs


def main(argv: Sequence[str] | None = None) -> int:
    """The command line's entry point; returns the exit status."""
    prepare_outputs()
    try:
        try:
            status = _command(arguments.parser().parse_args(argv))
        except SystemExit as ended:  # --help, --version or wrong use
            status = int(ended.code or 0)
        sys.stdout.flush()  # here, where a full disk still gets an answer
        return status
    except UsageError as wrong:
        return _told(str(wrong), wrong.status)
    except BrokenPipeError:  # `| head` has seen enough
        return _told("", 1)
    except OSError as fault:
        return _told(f"stdout: must take what is printed; {fault.strerror}", 3)
    except KeyboardInterrupt:
        return _told("Ctrl-C: nothing was completed yet", INTERRUPTED)


def _told(line: str, status: int) -> int:
    """Say `line`, and leave nothing in a stream that takes nothing: the interpreter would fail on it at its end."""
    with contextlib.suppress(OSError):
        if line:
            print(line, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return status


def _command(args: argparse.Namespace) -> int:
    """Each command imports what it needs: a folder of models is listed without the loop, a batch without the module."""
    if args.command == "doctor":
        from oarbank_llmserve import doctor

        return doctor.main(as_json=args.json)
    if args.command == "models":
        return _models(args)
    if args.command == "module":
        return _module(args)
    from oarbank_llmserve import batch_command

    return batch_command.run(args)


def _models(args: argparse.Namespace) -> int:
    from oarbank_llmserve import inventory

    folder = inventory.default_folder() if args.folder is None else Path(args.folder)
    try:
        found = inventory.entries(folder)
    except OSError as fault:
        raise UsageError(
            f"{folder}: must be a folder of models; {fault.strerror}. Name one, or set OARBANK_MODULE_DATA"
        ) from None
    if not found:
        raise UsageError(f"{folder}: must hold a model; found none. Put a .gguf file or an MLX model's folder there", 1)
    for line in inventory.table(found, args.sequences, args.tokens):
        print(line)
    return 0


def _module(args: argparse.Namespace) -> int:
    from oarbank_llmserve import module_dir

    try:
        files = module_dir.write_module(Path(args.folder), None if args.uv is None else Path(args.uv), args.python)
    except module_dir.CannotWrite as fault:
        raise UsageError(str(fault)) from None
    except OSError as fault:
        raise UsageError(f"{fault.filename}: must be writable; {fault.strerror}", 3) from None
    print(f"{args.folder}: {len(files)} files. Prove it: oarbank-sdk conform {args.folder}")
    return 0

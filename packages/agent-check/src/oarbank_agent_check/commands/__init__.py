"""The commands of `oarbank-agent-check`, one file each: `add(commands)` says its words, `run(arguments)` does it.

A command translates: words into calls, answers into lines and an exit code. It raises `CouldNotTell` or `WrongUse` for
what the program says in one line on stderr.
"""

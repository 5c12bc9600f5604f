"""Verdicts: what was seen in, checks with sentences out, one file for each kind of run.

Pure, all of it: no clock, no file, no process, no thread. A sentence names both sides, the limit and what was found. A
verdict that a busy machine could have caused is `unknown`, with the figures; a runner is accused only of what it must
have done.
"""

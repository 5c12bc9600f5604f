"""Batches of prompts through a local language model, beside a protected GPU program.

The runner half (everything but `cli`, `dispatch` and `screen`) needs the standard library and `oarbank_sdk` alone, so
that a module directory can carry it. A backend is imported only when a job asks for it.
"""

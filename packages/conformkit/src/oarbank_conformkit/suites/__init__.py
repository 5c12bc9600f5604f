"""The suites: each runs the runner for one purpose and hands what it saw to `judge`.

A suite touches the world and decides nothing about the runner. What goes wrong in the kit itself is a `HostFault`.
"""

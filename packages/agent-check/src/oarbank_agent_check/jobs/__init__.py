"""Start a module's runner as an agent starts it, steer it through its files and signals, and end it whole.

Everything that an agent and the conformance kit do alike with a job is here, once: the manifest's facts, the spec, the
environment, the directories, the processes. Nothing here imports or judges the module.
"""

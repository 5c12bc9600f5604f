"""The conformance kit: it judges a runner through its files and signals alone, and never imports what it judges.

The way of a run: `bundle` reads a module's directory, `plan` says what is checked, `conduct` carries it out, `suites`
start the runner and look, `judge` decides, `report` and `render` say it. `rules.toml` holds every rule.
"""

"""A report as text or JSON: pure functions from values to text."""

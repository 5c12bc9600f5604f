"""A report as text, JSON, JUnit XML or a page: pure functions from values to text."""

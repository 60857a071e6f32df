"""The report: figures, charts and the page's template."""

"""Base classes of estimators: parameters, saving, rows in any container, steps of a fit, and summaries."""

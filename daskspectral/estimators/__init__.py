"""What all estimators share: parameters, saving, rows in any container, the steps of a fit, and their summary."""

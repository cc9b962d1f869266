"""Passes over the rows: sums, column statistics, evaluation of functions, and scores."""

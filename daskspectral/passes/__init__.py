"""Passes over the rows that every method makes: sums, first looks, functions applied, and scores."""

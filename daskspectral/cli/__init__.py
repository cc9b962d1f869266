"""Command line of the estimators, on zarr paths and URLs."""

from daskspectral.cli.entry import command, main

__all__ = ["command", "main"]

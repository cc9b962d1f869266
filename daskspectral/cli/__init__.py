"""The command `daskspectral`: what the estimators do, from a shell, on zarr paths and URLs."""

from daskspectral.cli.entry import command, main

__all__ = ["command", "main"]

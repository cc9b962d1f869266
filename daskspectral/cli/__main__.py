"""`python -m daskspectral.cli`."""

from daskspectral.cli.entry import main

if __name__ == "__main__":
    main()

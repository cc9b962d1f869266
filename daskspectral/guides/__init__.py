"""The user guide, one page for each topic: `help("daskspectral.guides.fitting")`, and so on.

    installing      extras, completion in a shell, the documentation
    fitting         results, input data, parameters
    shell           the command
    scale           clusters, object stores, long runs, growing data
    guarantees      what holds for every run, and what raises a warning

How to write operators, kernels, bases and forms is explained in `help(dsp.operators)`, `help(dsp.kernels)`,
`help(dsp.basis)` and `help(dsp.forms)`; how to change the package in `.github/CONTRIBUTING.md`.
"""

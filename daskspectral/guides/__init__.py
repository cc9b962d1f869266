"""What a user asks beyond the first fit, one page each: `help("daskspectral.guides.fitting")`, and so on.

    installing      extras, a browser of results, tab completion
    fitting         what a fit gives, what it takes, and which options there are
    shell           the commands
    scale           clusters, object stores, long runs, growing data
    guarantees      what holds whatever happens, and what is warned of

What a part is, and how one of your own is written, is said where it is: `help(dsp.operators)`, `help(dsp.kernels)`,
`help(dsp.basis)`, `help(dsp.forms)`; how the code is changed, in `.github/CONTRIBUTING.md`.
"""

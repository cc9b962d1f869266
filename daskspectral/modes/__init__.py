"""Modes of the data: sums over rows of weight exp(-i j.t), from which matrices of forms are computed.

On the `frequencies.Frequencies` of a `basis.FourierLattice` a form is a sum of terms, factor times mean(weight d_a f
d_b g), with weights that are products of fields (`matrices.terms_of`). The modes of each weight are summed once, for
any number of forms, functions and kernels.
"""

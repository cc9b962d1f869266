"""Modes of the data: sums over rows of weight exp(-i j.t), and the matrices of forms that follow from them.

On the `frequencies.Frequencies` of a `basis.FourierLattice` a form is a sum of terms, factor times mean(weight d_a f
d_b g), with weights that are products of fields (`matrices.terms_of`). Each weight needs its modes once, for any number
of forms, functions and kernels.
"""

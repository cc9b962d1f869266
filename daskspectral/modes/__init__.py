"""Modes of the data: sums over rows of weight exp(-i j.t), from which matrices of forms are computed.

A form on a `basis.FourierLattice` is a sum of terms, factor times mean(weight d_a f d_b g), with weights that are
products of fields.
"""

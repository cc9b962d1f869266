"""Networks as bases: losses over the traced forms of an operator, and the training by them (extra `neural`).

A form is data: bases contract it in numpy, `forms.differentiable` differentiates it in JAX. By its Gram matrix G and
its energy E the loss of k functions f_j is equation (18) of Cabannes and Bach (2024),

    2 sum_j E(f_j, f_j) / mu_j + |G - 1|^2,

least for f_i = sqrt(1 - l_i / mu_i)+ e_i with the eigenfunctions e_i: what lies above mu vanishes, and for equal mu
the functions come rotated. Of operators between two spaces it is -2 tr E[f L g^T] + tr E[f f^T] E[g g^T]. A trained
network is frozen, measured over all rows and solved as any basis is: both defects are gone.
"""

from daskspectral.neural.losses import Loss, orthogonality
from daskspectral.neural.training import Networks, State, Trainer, available, optax

__all__ = ["Loss", "Networks", "State", "Trainer", "available", "optax", "orthogonality"]

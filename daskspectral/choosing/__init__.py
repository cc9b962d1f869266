"""Construction of functions from the data: landmarks, lattices, networks, and their comparison on a pilot sample."""

"""Which functions: landmarks, lattices, networks and others, as they are made from the data or compared on a pilot."""

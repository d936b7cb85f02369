"""Two agents on accelerators: the labels of `lakewright.core_jax.solver.solve`, on arrays with the boards last."""

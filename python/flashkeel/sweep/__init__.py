"""Sweeps: one experiment over many values of its keys, here or on a cluster."""

"""A report: all that a result says, in one HTML file that needs nothing else."""

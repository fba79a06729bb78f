"""What draws, prints and writes files: pictures, tables, units, saved results.

It reads what was measured and decides no number of a result.
"""

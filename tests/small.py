"""A small experiment, which takes well under a second."""

SMALL = """\
title = "Small"
seed = 7

[device]
preset = "autossd"
logical_capacity = "380MiB"

[device.geometry]
blocks_per_plane = 16
pages_per_block = 64

[device.gc]
start_below = 40
stop_above = 60

[workload]
requests = 20000

[workload.source]
policy = "synthetic"
read_fraction = 0.7
arrivals = { policy = "poisson", iops = 20000 }

[[runs]]
name = "fifo"
set = { "device.scheduler" = "fifo" }

[[runs]]
name = "debit"
set = { "device.scheduler" = "debit" }
"""

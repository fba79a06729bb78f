"""Draw a picture of each axis of policies: ``make policies``.

Each is a run a policy on a small device, for the page of policies in the site. They are kept
in ``docs/images/policies``, because they change only where a policy does.
"""

import sys
from collections.abc import Iterator

import flashkeel
from site_policies import LEFT_OUT, PICTURES, names, picture

DEVICE = """\
[device]
preset = "autossd"
logical_capacity = "370MiB"
geometry = { blocks_per_plane = 16, pages_per_block = 64 }
gc = { start_below = 40, stop_above = 60 }
[workload]
requests = 12000
[workload.source]
policy = "synthetic"
read_fraction = 0.7
arrivals = { policy = "poisson", iops = 9000 }
"""
TENANTS = """
[[stack.tenants]]
name = "a"
[[stack.tenants]]
name = "b"
weight = 300
"""
TWO = "[[stack.devices]]\nssd = {}\n" * 2
MIRROR = "[[stack.devices]]\nmirror.devices = [{ ssd = {} }, { ssd = {} }]\nmirror."
TIER = """
[[stack.devices]]
tier.upper.nvm = { capacity = "32MiB" }
tier.lower.ssd = {}
tier."""
BACK = 'placement = "write-back"\ntier.'
RATED = (
    BACK + 'writeback = { policy = "periodic", period = "1ms", batch = "64KiB" }\n'
    'tier.ratings.upper = { per_day = "4MiB", day = "20ms", week = "140ms", budget = BUDGET }\n'
)
COMMANDED = """
[device.window]
policy = "commanded"
[[stack.devices]]
coordinator.device.ssd = {}
coordinator.share = { count = 100, window = "20ms", rest = "20ms", top_ups = true, KEY = @ }
"""
STRIPES = {
    "device.allocation": "striped",
    "device.map_cache": "all",
    "device.buffer.rewrite": "coalesce",
    "workload.source.arrivals": {"policy": "poisson", "iops": 2500},
    "device.logical_capacity": "250MiB",
}
BESIDE = {
    "read choice": {"device.window": "commanded"},
    "volume manager": {"device.logical_capacity": "320MiB"},
    "throttle": {"device.wear": {"policy": "rated", "rated_cycles": 3000}},
    "movement": {
        "device.geometry": {"planes_per_chip": 1, "blocks_per_plane": 32, "pages_per_block": 64}
    },
    "rotation": STRIPES | {"device.redundancy": "logical"},
    "read path": STRIPES | {"device.redundancy": "logical"},
    "redundancy": STRIPES,
    "parity update": STRIPES | {"device.redundancy": "logical"},
    "windows in turn": {
        "device.sets": 2,
        "device.window": "commanded",
        "device.logical_capacity": "200MiB",
    },
}
"""What every policy of an axis needs beside it."""
FORMS = {
    ("urgency", "fixed"): '{ policy = "fixed", quick = [1] }',
    ("volume manager", "va-lvm"): '{ policy = "va-lvm", bits = [16] }',
    ("buffer kind", "fore"): {"device.buffer.kind": "fore", "device.buffer.flush": ["full"]},
    ("read choice", "window"): '"window"\nmirror.windows = "alternate"',
    ("pacing", "closed"): {"workload.pacing": {"policy": "closed", "depth": 4}},
}
"""Values of policies that have to be told something."""
AXES = {
    "victim policy": "device.gc.victim",
    "scheduler": "device.scheduler",
    "share control": "device.scheduler.control",
    "buffer kind": "device.buffer.kind",
    "power": "device.power",
    "throttle": "device.throttle",
    "window": "device.window",
    "allocation": "device.allocation",
    "erasing": "device.gc.erasing",
    "invocation": "device.gc.invocation",
    "movement": "device.gc.movement",
    "rotation": "device.gc.rotation",
    "read path": "device.read_path",
    "redundancy": "device.redundancy",
    "parity update": "device.redundancy.update",
    "slc cache": "device.slc_cache",
    "arrival process": "workload.source.arrivals",
    "access pattern": "workload.source.pattern",
    "pacing": "workload.pacing",
    "I/O scheduler": "\n[stack]\ndepth = 8\nscheduler = @\n" + TENANTS,
    "volume manager": "\n[stack]\nvolumes = @\n"
    + TENANTS
    + TWO.replace("{}", "{ partition_bits = [16] }"),
    "predictor": '\n[stack]\ndepth = 8\nscheduler = "pas"\npredictor = @\n',
    "urgency": '\n[stack]\nvolumes = { policy = "striped", chunk = "8KiB" }\n'
    'scheduler = "weighted-round-robin"\nurgency = @\n' + TENANTS + TWO,
    "acknowledgement": MIRROR + "acknowledge = @",
    "hedge": MIRROR + "hedge = @",
    "read choice": MIRROR + "read = @",
    "windows in turn": "\n[[stack.devices]]\nmirror.devices = [{ ssd = {} }]\nmirror.windows = @",
    "message order": "\n[[stack.devices]]\nnetwork.device.ssd = {}\n"
    'network.leg = { request_bandwidth = "60MB/s", response_bandwidth = "60MB/s", order = @ }\n',
    "count allocation": TENANTS + COMMANDED.replace("KEY", "allocation"),
    "demand": TENANTS + COMMANDED.replace("KEY", "demand"),
    "admission": TIER + BACK + 'eviction = "lru"\ntier.admission = @',
    "eviction": TIER + BACK + "eviction = @",
    "placement": TIER + 'eviction = "lru"\ntier.admission = "all"\ntier.placement = @',
    "writeback": TIER + BACK + "writeback = @",
    "overflow": TIER + RATED.replace("BUDGET", '"anchored"') + "tier.overflow = @",
    "budget": TIER + RATED.replace("BUDGET", "@"),
}
"""The key of each axis, or a document in which ``@`` is the policy."""


def experiments(axis: str, policies: list[str]) -> Iterator[tuple[str, flashkeel.Experiment]]:
    """Give an experiment a policy, on the small device."""
    where = AXES[axis]
    for policy in policies:
        if (axis, policy) in LEFT_OUT:
            continue
        form = FORMS.get((axis, policy), f'"{policy}"')
        # With a number of requests under way there are no arrivals.
        base = DEVICE.rpartition("arrivals")[0] if policy == "closed" else DEVICE
        text = base + (where.replace("@", str(form)) if "@" in where else "")
        keys = BESIDE.get(axis, {}) | ({} if "@" in where else {where: policy})
        if isinstance(form, dict):
            keys = form
        experiment = flashkeel.Experiment(text, axis)
        for key, value in keys.items():
            experiment = experiment.set(key, value)
        yield policy, experiment


def runs(axis: str, policies: list[str]) -> flashkeel.Result:
    """Return a run a policy."""
    found = {policy: experiment.run() for policy, experiment in experiments(axis, policies)}
    data = [result.runs[0].data | {"name": name} for name, result in found.items()]
    first = next(iter(found.values()))
    return flashkeel.Result(first.document | {"runs": data}, first.files)


def main() -> None:
    """Draw the axes that are named, or all of them."""
    PICTURES.mkdir(exist_ok=True)
    for axis, policies in names().items():
        if axis not in AXES or (sys.argv[1:] and axis not in sys.argv[1:]):
            continue
        figure = runs(axis, policies).plot("cdf")
        figure.set_size_inches(6, 3.4)
        figure.savefig(picture(axis), dpi=75)


if __name__ == "__main__":
    main()

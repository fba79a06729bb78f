"""MQSim's pair of XML files: the drive (`ssdconfig.xml`) and what it is asked (`workload.xml`).

Meanings and units are those of MQSim's README, "MQSim parameters".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from flashkeel._core import InputError
from flashkeel.imports.document import Imported
from flashkeel.parsing import read_document

_CELLS = {"SLC": ("LSB",), "MLC": ("LSB", "MSB"), "TLC": ("LSB", "CSB", "MSB")}
"""The page types of each kind of cell."""
_VICTIMS = {"GREEDY": "greedy", "RGA": "d-choices", "FIFO": "fifo"}
_SPARE = 0.07
"""Share of the flash that is spare where nothing says it; a choice of ours."""
_RESERVED = 4
"""Free blocks of each plane that collection begins above at least; a choice of ours."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_GENERATORS = ("QUEUE_DEPTH", "BANDWIDTH", "ARRIVAL_RATE")
_SUSPEND_TIMES_NS = {"Suspend_Program_Time": 100_000, "Suspend_Erase_Time": 700_000}
"""How long it takes to suspend, where nothing says it (src/exec/Flash_Parameter_Set.cpp)."""
_SUSPENDED = {
    "NONE": (),
    "PROGRAM": ("Suspend_Program_Time",),
    "ERASE": ("Suspend_Erase_Time",),
    "PROGRAM_ERASE": ("Suspend_Program_Time", "Suspend_Erase_Time"),
}
"""The times of what each `CMD_Suspension_Support` suspends."""
_TIME_UNITS = {"PICOSECOND": None, "NANOSECOND": "1ns", "MICROSECOND": "1us"}


class _Fields:
    """The fields of an element; remembers which have been taken."""

    def __init__(self, file: Path, element: ElementTree.Element) -> None:
        self.file = file
        self.tag = element.tag
        self._texts = {it.tag: (it.text or "").strip() for it in element if len(it) == 0}
        self._taken: set[str] = set()

    def text(self, key: str, default: str | None = None) -> str:
        """Return a field, or InputError if it is missing and has no default."""
        self._taken.add(key)
        found = self._texts.get(key, default)
        if found is None:
            raise InputError(f"{self.file}: {self.tag} has no {key}")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number of at least 0."""
        text = self.text(key, None if default is None else str(default))
        try:
            found = float(text)
        except ValueError:
            raise InputError(f"{self.file}: {key}: {text!r} is not a number") from None
        if not 0 <= found < 2**63:
            raise InputError(f"{self.file}: {key}: {text} is out of range")
        return found

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a whole number of at least 0."""
        return int(self.number(key, default))

    def is_true(self, key: str) -> bool:
        """Return whether a field says true, in one of the words for it."""
        text = self.text(key, "false")
        if text.lower() not in _TRUTHS:
            raise InputError(f"{self.file}: {key}: {text!r} is neither true nor false")
        return _TRUTHS[text.lower()]

    def has(self, key: str) -> bool:
        """Return whether a field is there."""
        return key in self._texts

    def rest(self) -> list[str]:
        """Return the fields that nobody has taken."""
        return [key for key in self._texts if key not in self._taken]


def read_mqsim(config: Path, workload: Path | None, scenario: int = 1) -> Imported:
    """Return the experiment of a drive and one of the scenarios asked of it, counted from 1."""
    notes: list[str] = []
    root = _parse(config, "Execution_Parameter_Set")
    table: dict[str, Any] = {"title": f"MQSim {config.name}"}
    device, seed = _device(config, root, notes)
    if seed:
        table["seed"] = seed
    table["device"] = device
    if workload is None:
        notes.append("no workload was given: it is 4 KiB random writes, one at a time")
        source = {"policy": "synthetic", "read_fraction": 0.0}
        pacing = {"policy": "closed", "depth": 1}
        table["workload"] = {"requests": 100_000, "pacing": pacing, "source": source}
        return Imported(f"MQSim's {config.name}", table, notes)
    scenarios = _parse(workload, "MQSim_IO_Scenarios").findall("IO_Scenario")
    if not 1 <= scenario <= len(scenarios):
        raise InputError(f"{workload}: no scenario {scenario}; it has {len(scenarios)}")
    if len(scenarios) > 1:
        notes.append(f"scenario {scenario} of {len(scenarios)}; --scenario chooses another")
    chosen = list(scenarios[scenario - 1])
    # Each flow has an equal part of the logical space, as in MQSim.
    space = int(device["logical_capacity"].removesuffix("B")) // max(1, len(chosen))
    flows, occupied, said = [], list[float](), dict[str, list[str]]()
    for number, element in enumerate(chosen, 1):
        own: list[str] = []
        flow, occupancy = _flow(workload, element, space, own)
        flows.append(flow)
        occupied.append(occupancy)
        for note in own:
            said.setdefault(note, []).append(str(number))
    for note, numbers in said.items():
        notes.append(f"flow{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {note}")
    if not flows:
        raise InputError(f"{workload}: scenario {scenario} has no flow")
    if device["precondition"]["pattern"] != "none":
        _fill(device["precondition"], occupied, notes)
    if len(flows) == 1:
        table["workload"] = flows[0]
    else:
        tenants = [{"name": f"flow-{n}", "workload": flow} for n, flow in enumerate(flows, 1)]
        depth = sum(flow["pacing"].get("depth", 32) for flow in flows)
        table["stack"] = {"depth": depth, "tenants": tenants}
        notes.append("each flow has a volume of its own on the drive")
    made = f"MQSim's {config.name} and {workload.name}"
    return Imported(made, table, list(dict.fromkeys(notes)))


def _parse(file: Path, expected: str) -> ElementTree.Element:
    try:
        text = read_document(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise InputError(f"{file}: entities are not read")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{file}: not XML: {error}") from error
    if root.tag != expected:
        raise InputError(f"{file}: begins with <{root.tag}>; <{expected}> was expected")
    return root


def _child(file: Path, element: ElementTree.Element, tag: str) -> ElementTree.Element:
    found = element.find(tag)
    if found is None:
        raise InputError(f"{file}: {element.tag} has no {tag}")
    return found


def _device(file: Path, root: ElementTree.Element, notes: list[str]) -> tuple[dict[str, Any], int]:
    """Return the drive, and its seed."""
    outer = _child(file, root, "Device_Parameter_Set")
    drive = _Fields(file, outer)
    flash = _Fields(file, _child(file, outer, "Flash_Parameter_Set"))
    host = _Fields(file, _child(file, root, "Host_Parameter_Set"))
    channels, planes = drive.whole("Flash_Channel_Count"), flash.whole("Plane_No_Per_Die")
    dies = drive.whole("Chip_No_Per_Channel") * flash.whole("Die_No_Per_Chip")
    blocks, pages = flash.whole("Block_No_Per_Plane"), flash.whole("Page_No_Per_Block")
    page_bytes = flash.whole("Page_Capacity")
    all_blocks = channels * dies * planes * blocks
    if not drive.has("Overprovisioning_Ratio"):
        notes.append(f"there is no Overprovisioning_Ratio; {_SPARE} is taken")
    spare = drive.number("Overprovisioning_Ratio", _SPARE)
    if spare >= 1:
        raise InputError(f"{file}: Overprovisioning_Ratio: {spare:g} leaves the host no capacity")
    capacity = int(all_blocks * pages * page_bytes * (1 - spare)) >> 20 << 20
    start = max(int(drive.number("GC_Exec_Threshold", 0.05) * all_blocks), _RESERVED)
    # MQSim begins where spare blocks are nearly all there is; ours needs room to stop.
    start = min(start, max(int(spare * all_blocks / 4), _RESERVED))
    device: dict[str, Any] = {
        "logical_capacity": f"{capacity}B",
        "map_cache": "all"
        if drive.is_true("Ideal_Mapping_Table")
        else f"{drive.whole('CMT_Capacity', 2 << 20)}B",
        "scheduler": "priority",
        "geometry": {
            "channels": channels,
            "chips_per_channel": dies,
            "planes_per_chip": planes,
            "blocks_per_plane": blocks,
            "pages_per_block": pages,
            "page_size": f"{page_bytes}B",
        },
        "timing": _timing(drive, flash),
        "buffer": {
            "kind": "back",
            "size": f"{max(drive.whole('Data_Cache_Capacity', 0), page_bytes * 2)}B",
        },
        "gc": {
            "start_below": start,
            "stop_above": start + max(1, start // 4),
            "victim": _victim(drive, notes),
        },
        "controller": {"queue_depth": max(1, drive.whole("IO_Queue_Depth", 65535))},
        "precondition": {
            "pattern": "random" if drive.is_true("Enabled_Preconditioning") else "none"
        },
    }
    link = host.number("PCIe_Lane_Bandwidth", 1.0) * host.whole("PCIe_Lane_Count", 4)
    if link > 0:
        device["host_link"] = f"{round(link * 1000)}MB/s"
    if drive.is_true("Use_Copyback_for_GC"):
        device["gc"]["movement"] = "plane-blocking"
    if drive.is_true("Static_Wearleveling_Enabled"):
        threshold = max(1, drive.whole("Static_Wearleveling_Threshold", 100))
        device["wear_levelling"] = {"enabled": True, "threshold": threshold}
    if times := _suspend_times(flash, notes):
        device["suspension"] = {"latency": f"{times[0]}ns"}
    notes.append("Transaction_Scheduling_Policy is taken for the scheduler priority")
    drive.text("Transaction_Scheduling_Policy", "")
    notes.append("GC_Exec_Threshold is a share of all blocks, at most a quarter of the spare ones")
    seed = drive.whole("Seed", 0)
    notes += _left_out(key for fields in (host, drive, flash) for key in fields.rest())
    return device, seed


def _suspend_times(flash: _Fields, notes: list[str]) -> list[int]:
    """Return the times of what can be suspended, that of programs first; none if nothing can."""
    support = flash.text("CMD_Suspension_Support", "NONE").upper()
    if support not in _SUSPENDED:
        known = ", ".join(_SUSPENDED)
        raise InputError(f"{flash.file}: CMD_Suspension_Support {support} is not one of {known}")
    # That of what cannot be suspended says nothing.
    every = {key: flash.whole(key, ns) for key, ns in _SUSPEND_TIMES_NS.items()}
    times = [every[key] for key in _SUSPENDED[support]]
    if len(times) == 1:
        notes.append(f"CMD_Suspension_Support {support}: here programs and erases are suspended")
    if len(set(times)) > 1:
        notes.append("Suspend_Program_Time is that of erases, too, and Suspend_Erase_Time left out")
    return times


def _fill(precondition: dict[str, Any], occupied: list[float], notes: list[str]) -> None:
    """Say how much of the drive is written before, of which each flow has an equal part."""
    fill = sum(occupied) / len(occupied) / 100
    if not fill:
        precondition["pattern"] = "none"
        return
    precondition["fill"] = fill
    if len(occupied) > 1 and fill < 1:
        notes.append(
            f"Initial_Occupancy_Percentage: the first {fill:.4g} of the drive is written, and not "
            "as much of each flow's part"
        )


def _left_out(keys: Iterable[str]) -> list[str]:
    """Return a note of keys that have no equal; none where there are none."""
    names = ", ".join(keys)
    return [f"left out, as there is no equal: {names}"] if names else []


def _timing(drive: _Fields, flash: _Fields) -> dict[str, Any]:
    technology = flash.text("Flash_Technology", "MLC").upper()
    if technology not in _CELLS:
        raise InputError(
            f"{flash.file}: Flash_Technology {technology} is not one of {', '.join(_CELLS)}"
        )

    def times(operation: str) -> list[str]:
        keys = [f"Page_{operation}_Latency_{it}" for it in ("LSB", "CSB", "MSB")]
        found = {key[-3:]: flash.whole(key, flash.whole(keys[0])) for key in keys}
        each = [f"{found[cell]}ns" for cell in _CELLS[technology]]
        return each if len(set(each)) > 1 else each[:1]

    rate = drive.number("Channel_Transfer_Rate") * drive.whole("Flash_Channel_Width", 1)
    return {
        "read": times("Read"),
        "program": times("Program"),
        "erase": f"{flash.whole('Block_Erase_Latency')}ns",
        "channel_rate": f"{round(rate)}MB/s",
    }


def _victim(drive: _Fields, notes: list[str]) -> str:
    policy = drive.text("GC_Block_Selection_Policy", "GREEDY").upper()
    if policy not in _VICTIMS:
        notes.append(f"GC_Block_Selection_Policy {policy} has no equal: d-choices")
    return _VICTIMS.get(policy, "d-choices")


def _flow(
    file: Path, element: ElementTree.Element, space: int, notes: list[str]
) -> tuple[dict[str, Any], float]:
    """Return what one flow of a scenario asks, and the percentage of its part written before."""
    fields = _Fields(file, element)
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "IO_Flow_Parameter_Set_Synthetic": lambda: _synthetic(fields, space, notes),
        "IO_Flow_Parameter_Set_Trace_Based": lambda: _trace(fields, notes),
    }
    if element.tag not in kinds:
        raise InputError(f"{file}: <{element.tag}> is not one of {', '.join(kinds)}")
    made = kinds[element.tag]()
    occupancy = fields.number("Initial_Occupancy_Percentage", 100)
    if occupancy > 100:
        raise InputError(f"{file}: Initial_Occupancy_Percentage: {occupancy:g} is more than 100 %")
    notes += _left_out(fields.rest())
    return made, occupancy


def _trace(fields: _Fields, notes: list[str]) -> dict[str, Any]:
    path = fields.text("File_Path").replace("\\", "/")
    # MQSim is started where its files lie, or not; the trace is in one of the two places.
    beside = fields.file.parent / path
    if not Path(path).exists() and beside.exists():
        path = str(beside)
    unit = fields.text("Time_Unit", "NANOSECOND").upper()
    source: dict[str, Any] = {"policy": "trace", "path": path, "format": "mqsim", "fold": "wrap"}
    # MQSim does not read the column of the device (src/host/IO_Flow_Trace_Based.cpp).
    source["devices"] = "merge"
    if unit not in _TIME_UNITS:
        raise InputError(f"{fields.file}: Time_Unit {unit} is not one of {', '.join(_TIME_UNITS)}")
    if _TIME_UNITS[unit] is None:
        notes.append(
            "Time_Unit PICOSECOND: the smallest tick here is 1ns, so that times are too long"
        )
    source["time_unit"] = _TIME_UNITS[unit] or "1ns"
    if (executed := fields.number("Percentage_To_Be_Executed", 100)) != 100:
        notes.append(f"Percentage_To_Be_Executed {executed:g} has no equal: all is replayed")
    relays = fields.whole("Relay_Count", 1)
    if relays > 1:
        source["repeat"] = relays
    notes.append("addresses of the trace beyond the drive are folded into it, as MQSim does")
    notes.append("devices that the trace names are one, as to MQSim")
    return {"pacing": {"policy": "open"}, "source": source}


def _synthetic(fields: _Fields, space: int, notes: list[str]) -> dict[str, Any]:
    size = fields.whole("Average_Request_Size", 8)
    # Says nothing of sizes that are all the same, and others are noted.
    fields.text("Variance_Request_Size", "")
    if fields.text("Request_Size_Distribution", "FIXED").upper() != "FIXED":
        notes.append(
            "Request_Size_Distribution other than FIXED has no equal: all have the average"
        )
    region = int(space * fields.number("Working_Set_Percentage", 100) / 100) >> 20 << 20
    source: dict[str, Any] = {
        "policy": "synthetic",
        "read_fraction": fields.number("Read_Percentage", 0) / 100,
        "block_sizes": [f"{max(1, size) * 512}B"],
        "pattern": _pattern(fields, notes),
        "region_size": f"{max(region, 1 << 20)}B",
    }
    if fields.is_true("Generated_Aligned_Addresses"):
        source["align"] = f"{fields.whole('Address_Alignment_Unit', 16) * 512}B"
    elif fields.has("Generated_Aligned_Addresses"):
        # What the unit would be says nothing then.
        fields.text("Address_Alignment_Unit", "")
        notes.append(
            "Generated_Aligned_Addresses false: to MQSim requests begin at any sector; here at "
            "multiples of their size"
        )
    workload: dict[str, Any] = {}
    requests = fields.whole("Total_Requests_To_Generate", 0)
    stop = fields.whole("Stop_Time", 0)
    # As MQSim does (src/host/IO_Flow_Synthetic.cpp).
    if stop or not requests:
        workload["duration"] = f"{fields.whole('Stop_Time')}ns"
        if requests:
            notes.append("Total_Requests_To_Generate says nothing where there is a Stop_Time")
    else:
        workload["requests"] = requests
    pacing: dict[str, Any]
    generator = fields.text("Synthetic_Generator_Type", "QUEUE_DEPTH").upper()
    if generator not in _GENERATORS:
        raise InputError(
            f"{fields.file}: Synthetic_Generator_Type {generator} is not one of "
            f"{', '.join(_GENERATORS)}"
        )
    if generator != "QUEUE_DEPTH":
        # Bytes a second, under one name or the other (src/exec/IO_Flow_Parameter_Set.h).
        key = "Intensity" if fields.has("Intensity") else "Bandwidth"
        iops = fields.number(key) / max(1, size * 512)
        if key == "Intensity":
            notes.append("Intensity is taken for bytes a second, as Bandwidth is")
        if not iops:
            raise InputError(f"{fields.file}: {key}: a flow of 0 bytes a second asks nothing")
        source["arrivals"] = {"policy": "poisson", "iops": iops}
        pacing = {"policy": "open"}
        fields.text("Average_No_of_Reqs_in_Queue", "")
    else:
        pacing = {
            "policy": "closed",
            "depth": max(1, fields.whole("Average_No_of_Reqs_in_Queue", 1)),
        }
        fields.text("Intensity", "")
        fields.text("Bandwidth", "")
    return workload | {"pacing": pacing, "source": source}


def _pattern(fields: _Fields, notes: list[str]) -> dict[str, Any]:
    distribution = fields.text("Address_Distribution", "UNIFORM_RANDOM").upper()
    hot = fields.number("Percentage_of_Hot_Region", 0) / 100
    match distribution:
        case "STREAMING":
            return {"policy": "sequential"}
        case "RANDOM_HOTCOLD" | "HOTCOLD_RANDOM" if 0 < hot < 1:
            # MQSim sends 1 - hot of the requests to the hot region.
            return {"policy": "hot-cold", "hot_space": hot, "hot_accesses": 1 - hot}
        case "UNIFORM_RANDOM" | "RANDOM_UNIFORM":
            return {"policy": "uniform"}
    notes.append(f"Address_Distribution {distribution} has no equal: all places alike")
    return {"policy": "uniform"}

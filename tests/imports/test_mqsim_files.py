"""MQSim's pair of files becomes an experiment."""

import tomllib

import pytest
from flashkeel import Experiment, InputError
from flashkeel.imports import read_mqsim

CONFIG = """\
<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Host_Parameter_Set>
    <PCIe_Lane_Bandwidth>1.0</PCIe_Lane_Bandwidth> <PCIe_Lane_Count>4</PCIe_Lane_Count>
  </Host_Parameter_Set>
  <Device_Parameter_Set>
    <Seed>321</Seed> <Enabled_Preconditioning>true</Enabled_Preconditioning>
    <HostInterface_Type>NVME</HostInterface_Type> <IO_Queue_Depth>1024</IO_Queue_Depth>
    <Data_Cache_Capacity>1048576</Data_Cache_Capacity> <CMT_Capacity>2097152</CMT_Capacity>
    <Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
    <GC_Exec_Threshold>0.05</GC_Exec_Threshold>
    <GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
    <Flash_Channel_Count>2</Flash_Channel_Count> <Flash_Channel_Width>1</Flash_Channel_Width>
    <Channel_Transfer_Rate>333</Channel_Transfer_Rate> <Chip_No_Per_Channel>2</Chip_No_Per_Channel>
    <Flash_Parameter_Set>
      <Flash_Technology>MLC</Flash_Technology>
      <CMD_Suspension_Support>ERASE</CMD_Suspension_Support>
      <Page_Read_Latency_LSB>75000</Page_Read_Latency_LSB>
      <Page_Read_Latency_CSB>75000</Page_Read_Latency_CSB>
      <Page_Read_Latency_MSB>75000</Page_Read_Latency_MSB>
      <Page_Program_Latency_LSB>500000</Page_Program_Latency_LSB>
      <Page_Program_Latency_CSB>600000</Page_Program_Latency_CSB>
      <Page_Program_Latency_MSB>900000</Page_Program_Latency_MSB>
      <Block_Erase_Latency>3800000</Block_Erase_Latency>
      <Die_No_Per_Chip>2</Die_No_Per_Chip> <Plane_No_Per_Die>2</Plane_No_Per_Die>
      <Block_No_Per_Plane>64</Block_No_Per_Plane> <Page_No_Per_Block>64</Page_No_Per_Block>
      <Page_Capacity>8192</Page_Capacity> <Page_Metadat_Capacity>448</Page_Metadat_Capacity>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>
"""

SYNTHETIC = """\
<IO_Flow_Parameter_Set_Synthetic>
  <Priority_Class>HIGH</Priority_Class> <Working_Set_Percentage>50</Working_Set_Percentage>
  <Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
  <Read_Percentage>30</Read_Percentage>
  <Address_Distribution>UNIFORM_RANDOM</Address_Distribution>
  <Request_Size_Distribution>FIXED</Request_Size_Distribution>
  <Average_Request_Size>8</Average_Request_Size> <Variance_Request_Size>0</Variance_Request_Size>
  <Average_No_of_Reqs_in_Queue>16</Average_No_of_Reqs_in_Queue>
  <Stop_Time>1000000000</Stop_Time> <Total_Requests_To_Generate>0</Total_Requests_To_Generate>
</IO_Flow_Parameter_Set_Synthetic>
"""

TRACE = """\
<IO_Flow_Parameter_Set_Trace_Based>
  <File_Path>traces\\tpcc-small.trace</File_Path> <Relay_Count>2</Relay_Count>
  <Time_Unit>NANOSECOND</Time_Unit>
</IO_Flow_Parameter_Set_Trace_Based>
"""


@pytest.fixture
def pair(tmp_path):
    def write(*scenarios, config=CONFIG):
        inner = "".join(f"<IO_Scenario>{flows}</IO_Scenario>" for flows in scenarios)
        files = {
            "ssdconfig.xml": config,
            "workload.xml": f"<MQSim_IO_Scenarios>{inner}</MQSim_IO_Scenarios>",
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return tmp_path / "ssdconfig.xml", tmp_path / "workload.xml"

    return write


def test_the_drive(pair):
    imported = read_mqsim(*pair(SYNTHETIC))
    device = imported.table["device"]
    assert device["geometry"] == {
        "channels": 2,
        "chips_per_channel": 4,
        "planes_per_chip": 2,
        "blocks_per_plane": 64,
        "pages_per_block": 64,
        "page_size": "8192B",
    }
    assert device["timing"] == {
        "read": ["75000ns"],
        "program": ["500000ns", "900000ns"],
        "erase": "3800000ns",
        "channel_rate": "333MB/s",
    }
    # 512 MiB and a fifth of it spare.
    assert device["logical_capacity"] == f"{409 << 20}B"
    assert (device["host_link"], device["gc"]["victim"]) == ("4000MB/s", "d-choices")
    assert imported.table["seed"] == 321
    left = "left out, as there is no equal: "
    assert f"{left}HostInterface_Type, Page_Metadat_Capacity" in imported.notes
    assert f"flow 1: {left}Priority_Class" in imported.notes


def test_what_is_made_is_an_experiment(pair):
    # Together they work on half of the drive, of which each has its part.
    imported = read_mqsim(*pair(SYNTHETIC + SYNTHETIC))
    flows = imported.table["stack"]["tenants"]
    assert flows[0]["workload"]["source"]["region_size"] == f"{102 << 20}B"
    plans = Experiment(imported.to_toml(), "imported.toml").plans()
    tenants = plans[0]["config"]["stack"]["tenants"]
    assert [it["name"] for it in tenants] == ["flow-1", "flow-2"]
    assert tenants[0]["workload"]["pacing"] == {"policy": "closed", "depth": 16}


def test_a_trace_and_a_scenario(pair):
    files = pair(SYNTHETIC, TRACE)
    first, second = read_mqsim(*files), read_mqsim(*files, 2)
    assert "scenario 1 of 2; --scenario chooses another" in first.notes
    source = second.table["workload"]["source"]
    # To MQSim there is one device, whatever the trace says.
    assert source["devices"] == "merge"
    assert "flow 1: devices that the trace names are one, as to MQSim" in second.notes
    assert (source["path"], source["repeat"]) == ("traces/tpcc-small.trace", 2)
    with pytest.raises(InputError, match="no scenario 3; it has 2"):
        read_mqsim(*files, 3)


@pytest.mark.parametrize(
    ("support", "latency", "said"),
    [
        ("ERASE", "700000ns", "CMD_Suspension_Support ERASE: here programs and erases are"),
        ("PROGRAM", "90000ns", "CMD_Suspension_Support PROGRAM: here programs and erases are"),
        ("PROGRAM_ERASE", "90000ns", "Suspend_Program_Time is that of erases, too"),
        ("NONE", None, None),
    ],
)
def test_suspension_takes_as_long_as_of_what_is_suspended(pair, support, latency, said):
    times = (
        "<Suspend_Erase_Time>700000</Suspend_Erase_Time>"
        "<Suspend_Program_Time>90000</Suspend_Program_Time><Page_Capacity>"
    )
    config = CONFIG.replace("ERASE</CMD", f"{support}</CMD").replace("<Page_Capacity>", times)
    imported = read_mqsim(*pair(SYNTHETIC, config=config))
    assert imported.table["device"].get("suspension", {}).get("latency") == latency
    notes = [note for note in imported.notes if "uspen" in note]
    assert len(notes) == bool(said) and all(note.startswith(said) for note in notes)


def test_as_much_is_written_before_as_is_occupied(pair):
    def made(*percent, config=CONFIG):
        flows = [
            SYNTHETIC.replace("<Read_Perc", f"<{name}>{each}</{name}><Read_Perc")
            for each in percent
        ]
        imported = read_mqsim(*pair("".join(flows), config=config))
        noted = [note for note in imported.notes if name in note]
        return imported.table["device"]["precondition"], noted

    name = "Initial_Occupancy_Percentage"
    assert made(75) == ({"pattern": "random", "fill": 0.75}, [])
    assert made(0) == ({"pattern": "none"}, [])
    assert made(100, 100) == ({"pattern": "random", "fill": 1.0}, [])
    precondition, notes = made(50, 100)
    assert precondition["fill"] == 0.75
    assert notes == [
        f"{name}: the first 0.75 of the drive is written, and not as much of each flow's part"
    ]
    none = CONFIG.replace("<Enabled_Preconditioning>true", "<Enabled_Preconditioning>false")
    assert made(75, config=none) == ({"pattern": "none"}, [])
    with pytest.raises(InputError, match="101 is more than 100 %"):
        made(101)


def test_a_part_of_a_trace_is_noted(pair):
    def noted(percent):
        field = f"<Percentage_To_Be_Executed>{percent}</Percentage_To_Be_Executed><Relay"
        notes = read_mqsim(*pair(TRACE.replace("<Relay", field))).notes
        return [note for note in notes if "Percentage" in note]

    assert noted(100) == []
    assert noted(50) == ["flow 1: Percentage_To_Be_Executed 50 has no equal: all is replayed"]


def test_rates_of_either_version(pair):
    def flow(kind, field, value):
        text = SYNTHETIC.replace("QUEUE_DEPTH", kind)
        return read_mqsim(
            *pair(text.replace("<Read_Perc", f"<{field}>{value}</{field}><Read_Perc"))
        )

    for kind, field in [("BANDWIDTH", "Bandwidth"), ("ARRIVAL_RATE", "Intensity")]:
        imported = flow(kind, field, 262144)
        assert imported.table["workload"]["source"]["arrivals"]["iops"] == 64.0
        assert imported.table["workload"]["pacing"] == {"policy": "open"}
        assert any("Intensity" in note for note in imported.notes) == (field == "Intensity")
    with pytest.raises(InputError, match="Synthetic_Generator_Type FOO is not one of"):
        flow("FOO", "Intensity", 1)


def test_addresses_that_are_not_aligned_are_noted(pair):
    def made(text):
        imported = read_mqsim(*pair(SYNTHETIC.replace("<Read_Perc", f"{text}<Read_Perc")))
        noted = [note for note in imported.notes if "lign" in note]
        return imported.table["workload"]["source"].get("align"), noted

    unit = "<Address_Alignment_Unit>16</Address_Alignment_Unit>"
    name = "Generated_Aligned_Addresses"
    assert made(f"<{name}>true</{name}>{unit}") == ("8192B", [])
    align, notes = made(f"<{name}>false</{name}>{unit}")
    assert align is None
    assert notes == [
        f"flow 1: {name} false: to MQSim requests begin at any sector; here at multiples of "
        "their size"
    ]
    assert made("") == (None, [])


def test_what_is_not_said_is_noted(pair):
    config = CONFIG.replace("<Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>", "")
    notes = read_mqsim(*pair(SYNTHETIC, config=config)).notes
    assert "there is no Overprovisioning_Ratio; 0.07 is taken" in notes
    config = CONFIG.replace("<Seed>", "<Ideal_Mapping_Table>maybe</Ideal_Mapping_Table><Seed>")
    with pytest.raises(InputError, match="'maybe' is neither true nor false"):
        read_mqsim(*pair(SYNTHETIC, config=config))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<Flash_Channel_Count>2<", "<Flash_Channel_Count>two<", "Flash_Channel_Count: 'two'"),
        ("<Flash_Channel_Count>2</Flash_Channel_Count>", "", "has no Flash_Channel_Count"),
        ("Ratio>0.2<", "Ratio>1.5<", "Overprovisioning_Ratio: 1.5 leaves the host no capacity"),
        (">ERASE<", ">ALL<", "CMD_Suspension_Support ALL is not one of NONE, PROGRAM, ERASE"),
        ("MLC", "XLC", "Flash_Technology XLC is not one of SLC, MLC, TLC"),
        ("</Execution_Parameter_Set>", "", "not XML"),
        ("Execution_Parameter_Set>", "Other>", "begins with <Other>"),
        ("<?xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><?xml", "entities are not read"),
    ],
)
def test_what_is_wrong_is_named(pair, old, new, expected):
    config = CONFIG.replace(old, new)
    with pytest.raises(InputError, match=expected):
        read_mqsim(*pair(SYNTHETIC, config=config))


def test_a_trace_is_found_from_the_document(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("traces", "sub"):
        (tmp_path / folder).mkdir()
    (tmp_path / "traces" / "tpcc-small.trace").write_text("100 0 0 8 1\n200 0 16 8 0\n")
    (tmp_path / "ssd.xml").write_text(CONFIG)
    scenario = f"<MQSim_IO_Scenarios><IO_Scenario>{TRACE}</IO_Scenario></MQSim_IO_Scenarios>"
    (tmp_path / "wl.xml").write_text(scenario)
    outcome = cli("import", "mqsim", "ssd.xml", "wl.xml", "-o", "sub/c.toml")
    assert outcome.status == 0, outcome.err
    made = tomllib.loads((tmp_path / "sub" / "c.toml").read_text())
    assert made["workload"]["source"]["path"] == "../traces/tpcc-small.trace"


def test_a_flow_with_a_time_to_stop_has_it_as_mqsim_does(pair):
    count = "<Total_Requests_To_Generate>20000</Total_Requests_To_Generate>"
    both = SYNTHETIC.replace("<Total_Requests_To_Generate>0</Total_Requests_To_Generate>", count)
    imported = read_mqsim(*pair(SYNTHETIC + both))
    for tenant in imported.table["stack"]["tenants"]:
        assert tenant["workload"]["duration"] == "1000000000ns"
        assert "requests" not in tenant["workload"]
    flows = [note for note in imported.notes if note.startswith("flow")]
    assert flows == [
        "flows 1, 2: left out, as there is no equal: Priority_Class",
        "flow 2: Total_Requests_To_Generate says nothing where there is a Stop_Time",
    ]
    counted = both.replace("<Stop_Time>1000000000</Stop_Time>", "<Stop_Time>0</Stop_Time>")
    assert read_mqsim(*pair(counted)).table["workload"]["requests"] == 20_000

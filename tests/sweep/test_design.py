"""Grids, points by chance, and files that are no sweeps."""

from pathlib import Path

import pytest
from flashkeel import InputError
from flashkeel.sweep import design

GRID = 'experiment = "demo"\n[grid]\n"a.b" = [1, 2]\nc = ["x", "y", "z"]\n'


def parse(text):
    return design.parse(text, "mine.toml", Path())


def random(points, keys, seed=1):
    text = f'experiment = "demo"\n[random]\npoints = {points}\nseed = {seed}\n[random.keys]\n'
    return parse(text + keys).points


def test_a_grid_has_every_combination_in_order():
    points = parse(GRID).points
    assert len(points) == 6
    assert points[0] == {"a.b": 1, "c": "x"}
    assert points[1] == {"a.b": 1, "c": "y"}
    assert points[-1] == {"a.b": 2, "c": "z"}


def test_keys_may_be_written_with_dots_or_as_tables():
    same = GRID.replace('"a.b" = [1, 2]', "a.b = [1, 2]")
    assert parse(same).points == parse(GRID).points


def test_chance_stays_within_its_range_and_reaches_its_ends():
    points = random(400, 'n = { from = 3, to = 6 }\nx = { from = 0.5, to = 2.0 }\nv = ["a", "b"]')
    assert {point["n"] for point in points} == {3, 4, 5, 6}
    assert all(0.5 <= point["x"] <= 2.0 for point in points)
    assert {point["v"] for point in points} == {"a", "b"}


def test_a_narrow_range_is_neither_left_nor_one_value():
    points = random(20, 'n = { from = 1000000001, to = 1000000009.0, unit = "B" }')
    sizes = {float(point["n"].removesuffix("B")) for point in points}
    assert min(sizes) >= 1000000001 and max(sizes) <= 1000000009
    assert len(sizes) > 5
    logarithms = random(200, 'n = { from = 0.3, to = 0.30000001, scale = "log" }')
    assert all(0.3 <= point["n"] <= 0.30000001 for point in logarithms)


@pytest.mark.parametrize("unit", ["ns", "B", "B/s"])
def test_of_the_smallest_unit_there_are_no_fractions(unit):
    points = random(40, f'n = {{ from = 1.5, to = 4.5, unit = "{unit}" }}')
    assert {point["n"] for point in points} == {f"{n}{unit}" for n in (2, 3, 4)}


def test_a_logarithmic_range_has_as_many_values_in_each_decade():
    points = random(3000, 'n = { from = 1.0, to = 1000.0, scale = "log", unit = "us" }')
    values = [float(point["n"].removesuffix("us")) for point in points]
    for low in (1, 10, 100):
        assert 900 < sum(low <= value < 10 * low for value in values) < 1100


def test_quantities_by_chance_have_no_exponents():
    points = random(40, 'n = { from = 1e-5, to = 1e-4, scale = "log", unit = "ms" }')
    assert all(point["n"].startswith("0.0000") for point in points)
    assert random(1, 'n = { from = 1e16, to = 1e16, unit = "ns" }')[0]["n"] == "10000000000000000ns"


def test_more_points_begin_with_the_same_and_more_keys_change_none():
    keys = "n = { from = 1, to = 1000 }\n"
    few, many = random(5, keys), random(9, keys)
    assert many[:5] == few
    wider = random(5, keys + "m = { from = 1, to = 1000 }\n")
    assert [point["n"] for point in wider] == [point["n"] for point in few]
    assert random(5, keys, seed=2) != few


def test_a_grid_and_chance_multiply():
    points = parse(GRID + "[random]\npoints = 3\n[random.keys]\nn = { from = 1, to = 9 }").points
    assert len(points) == 18
    assert list(points[0]) == ["a.b", "c", "n"]


def test_every_example_is_one():
    assert "over-provisioning" in design.examples()
    for name in design.examples():
        found = design.read(name)
        assert found.experiment(found.points[0]).plans()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[grid]\na = [1]", "experiment: name one or its file"),
        ('experiment = "demo"', "nothing is varied"),
        (GRID.replace("[grid]", "[grd]"), 'grd: unknown key, expected one of .*mean "grid"'),
        (GRID.replace("[1, 2]", "1"), r"grid\.a\.b: expected a list of values"),
        (GRID.replace("[1, 2]", "[]"), r"grid\.a\.b: expected a list of values"),
        (GRID + "[random]\npoints = 0", r"random\.points: expected how many"),
        (GRID + "[random]\npoints = true", r"random\.points: expected how many"),
        (GRID + "[random]\npoints = 1\nseed = true", r"random\.seed: expected a whole number"),
        (GRID + "[random]\npoints = 1", r"random\.keys: expected keys"),
        (GRID + "[random]\npoints = 1\nkeys.n = { from = 2, to = 1 }", "from is 2, above to, 1"),
        (GRID + "[random]\npoints = 1\nkeys.n = { from = 'a', to = 1 }", "two numbers"),
        (GRID + "[random]\npoints = 1000001\nkeys.n = [1]", "how many, from 1 to 1000000"),
        (
            GRID + f"[random]\npoints = 1\nkeys.n = {{ from = 1, to = 1{'0' * 400} }}",
            "two numbers",
        ),
        (GRID + "[random]\npoints = 1\nkeys.n = { from = nan, to = inf }", "two numbers"),
        (
            GRID + "[random]\npoints = 1\nkeys.n = { from = 1.2, to = 1.7, unit = 'ns' }",
            "no whole number between them, and ns has no fractions",
        ),
        (
            GRID + "[random]\npoints = 1\nkeys.n = { from = 0, to = 1, scale = 'log' }",
            "numbers above 0",
        ),
        (GRID + "[random]\npoints = 1\nkeys.n = { from = 0, to = 1, step = 1 }", "step: unknown"),
        (GRID + "[picture]\nz = 1", r"picture\.z: unknown key"),
        ("experiment = ", "mine.toml: "),
    ],
)
def test_what_is_no_sweep_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse(text)


def test_a_key_is_varied_once():
    twice = GRID + "[random]\npoints = 3\n[random.keys]\nc = { from = 1, to = 9 }"
    with pytest.raises(InputError, match=r"mine\.toml: c is varied under \[grid\] and under"):
        parse(twice)


def test_relative_paths_start_at_the_folder_of_the_sweep(tmp_path):
    (tmp_path / "a.mqsim").write_text("0 0 0 8 1\n1000 0 8 8 0\n")
    text = (
        '[experiment.workload.source]\npolicy = "trace"\npath = "a.mqsim"\n'
        '[grid]\n"workload.source.path" = ["a.mqsim"]\n'
        '"stack.tenants" = [[{ name = "t", workload = { source.path = "a.mqsim" } }]]\n'
    )
    found = design.parse(text, str(tmp_path / "sweep.toml"), tmp_path)
    assert found.points[0]["workload.source.path"] == "a.mqsim"
    (plan,) = found.experiment(found.points[0]).plans()
    expected = str(tmp_path / "a.mqsim")
    assert plan["config"]["workload"]["source"]["path"] == expected
    (tenant,) = plan["config"]["stack"]["tenants"]
    assert tenant["workload"]["source"]["path"] == expected


@pytest.mark.parametrize(
    ("table", "values", "words"),
    [
        ("grid", '"1MiB..4MiB"', "as [1, 2, 3], found '1MiB..4MiB'"),
        ("grid", "5", "as [1, 2, 3], found 5"),
        ("grid", "{ from = 1, to = 4 }", "a range is drawn from by chance, under [random.keys]"),
        ("grid", "{ to = 4 }", "n: a range is drawn from by chance"),
        ("random.keys", '"1..4"', 'or a range, as { from = 1, to = 4, unit = "MiB" }, found'),
        ("random.keys", "{ to = 4 }", "n: expected from and to, two numbers, as { from = 1,"),
        ("random.keys", '{ from = "1MiB", to = "4MiB" }', 'as { from = 1, to = 4, unit = "MiB" }'),
    ],
)
def test_a_range_that_is_none_is_told_how_to_be_one(table, values, words):
    with pytest.raises(InputError) as refused:
        parse(f'experiment = "demo"\n[random]\npoints = 2\n[{table}]\nn = {values}\n')
    assert words in str(refused.value)


def test_keys_that_are_called_as_the_ends_of_a_range_are_varied():
    window = 'experiment = "demo"\n[grid.measure.chip_log]\nfrom = ["1s", "2s"]\n'
    assert [point["measure.chip_log.from"] for point in parse(window).points] == ["1s", "2s"]

"""The plot in plain characters."""

from flashkeel.output import textplot


def test_lines_fit_a_terminal_and_are_plain(small_result):
    text = textplot.tails(small_result.runs, "small_read")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text
    assert "o fifo  x debit" in text
    assert "99.9999 %" in text


def test_higher_latency_is_higher_up(small_result):
    rows = textplot.tails(small_result.runs[:1], "small_read").splitlines()
    marked = [(row.rfind("o"), index) for index, row in enumerate(rows[:-1]) if "o" in row]
    columns = [column for column, _ in marked]
    assert columns == sorted(columns, reverse=True)


def test_nothing_without_samples(small_result):
    assert textplot.tails(small_result.runs, "flush") == ""


def test_a_flat_tail_is_one_line_with_its_latency(known_run):
    run = known_run()
    known = run.data["small_read"]["percentile"]
    known.update(dict.fromkeys(known, 50_000))
    plot, *axis = textplot.tails([run], "small_read").splitlines()
    assert plot.split() == ["50.0", "µs", f"|{'o' * 61}"]
    assert axis[0].strip("+- ") == ""


def test_no_two_runs_have_one_mark(known_run):
    runs = [known_run(f"run {number}") for number in range(20)]
    *_, legend = textplot.tails(runs, "small_read").splitlines()
    marks = [part[0] for part in legend.strip().split("  ")]
    assert len(set(marks)) == len(marks) == 21

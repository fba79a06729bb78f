"""The table of prices, and a user's in its place."""

from __future__ import annotations

import pytest
from flashkeel._core import InputError
from flashkeel.prices import Prices

TECHNOLOGIES = ("slc", "mlc", "tlc", "qlc", "plc")


def test_more_bits_in_a_cell_are_cheaper_and_optane_is_the_dearest():
    prices = Prices.load()
    per_gb = [prices.of(technology, 1e9) for technology in TECHNOLOGIES]
    assert per_gb == sorted(per_gb, reverse=True)
    assert prices.of("optane", 1e9) == pytest.approx(20 * prices.of("qlc", 1e9))


def test_a_preset_costs_what_its_technology_does():
    prices = Prices.load()
    assert prices.of("qlc-1xnm", 2e9) == 2 * prices.of("qlc", 1e9)
    assert prices.of("optane-memory-32gb", 1e9) == prices.of("optane", 1e9)


def test_a_technology_without_a_price_has_none(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('date = 2026-01-01\ncurrency = "EUR"\nper_gb = { qlc = 0.05 }\n')
    prices = Prices.load(mine)
    assert (prices.date, prices.currency) == ("2026-01-01", "EUR")
    assert prices.of("qlc", 1e9) == 0.05
    assert prices.of("tlc", 1e9) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date = ", "mine.toml: "),
        ('date = "x"\ncurrency = "EUR"\n', "mine.toml: the key 'per_gb' is missing"),
        (
            'date = "x"\ncurency = "EUR"\nper_gb = {}\n',
            "mine.toml: curency: unknown key, expected one of date, currency, per_gb; "
            'did you mean "currency"?',
        ),
        ('date = "x"\ncurrency = "EUR"\nper_gb = 3\n', "per_gb: expected a table"),
        (
            'date = "x"\ncurrency = "EUR"\nper_gb = { qlc = "dear" }\n',
            "per_gb.qlc: 'dear' is no price; expected a number above 0",
        ),
        ('date = "x"\ncurrency = "EUR"\nper_gb = { qlc = -1 }\n', "per_gb.qlc: -1 is no price"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, message):
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    with pytest.raises(InputError) as refused:
        Prices.load(mine)
    assert message in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml"):
        Prices.load(tmp_path / "none.toml")

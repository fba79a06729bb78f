"""The page of a served drive, when its server ends and another begins."""

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from flashkeel.serving import web
from programs import require

SCRIPT = Path(__file__).with_name("page.js")
PAGE = Path(web.__file__).with_name("page.html")


def shown(*answers, apart_ms=1000):
    """Return what the page says after each answer: errors, rates, and the words of owners."""
    command = [require("node"), SCRIPT, json.dumps(answers), str(apart_ms)]
    return json.loads(subprocess.check_output(command, input=PAGE.read_bytes(), timeout=60))


def test_where_serving_has_ended_there_is_no_state():
    with web.listening("127.0.0.1:0", "d") as answer:
        page = answer(SimpleNamespace(state=lambda: None))
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{page}state.json", timeout=10)


def test_another_server_is_shown_from_its_beginning():
    said = shown([100, 5000], [101, 6000], None, [1, 10], [2, 30], [3, 70])
    errors, rates, owners = zip(*said, strict=True)
    assert [bool(error) for error in errors] == [False, False, True, False, False, False]
    assert rates[1].startswith("1,000 reads/s")
    assert [rate.split(" ")[0] for rate in rates[4:]] == ["20", "40"]
    assert owners[5].startswith("Of 60 requests in the last minute")


def test_a_minute_is_one_however_seldom_a_page_asks():
    said = shown(*([10 * at, 100 * at] for at in range(20)), apart_ms=10_000)
    assert said[-1][2].startswith("Of 600 requests in the last minute")

"""A job file of fio."""

import pytest


@pytest.fixture
def job(tmp_path):
    def write(text):
        path = tmp_path / "job.fio"
        path.write_text(text)
        return path

    return write

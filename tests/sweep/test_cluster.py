"""What the document says of clusters, as far as it goes without one."""

import os
import re
import subprocess
import sys

from structure.source import ROOT

SBATCH = """\
#!/bin/sh
cat "$1" >> "$JOBS"
echo "Submitted batch job $$"
"""


def test_the_lines_for_slurm_hand_it_jobs_that_work_for_the_address_they_print(tmp_path):
    text = (ROOT / "docs/sweeps.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert "jobs=64" in block
    for name, does in (("sbatch", SBATCH), ("scancel", "#!/bin/sh\n")):
        (tmp_path / name).write_text(does)
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "cluster.py"
    # The jobs are handed over while "Enter ends it" waits.
    script.write_text(
        block.replace("jobs=64", "jobs=2").replace(
            "input(", "import time\ntime.sleep(3)\ncluster.close()\nprint("
        )
    )
    jobs = tmp_path / "jobs"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "JOBS": str(jobs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    address = re.search(r"tcp://[\d.]+:\d+", done.stdout)[0]
    handed = jobs.read_text()
    assert handed.count(f"distributed.cli.dask_worker {address} ") == 2
    assert handed.count("#SBATCH --mem=4G") == 2
    assert handed.count("#SBATCH -t 02:00:00") == 2

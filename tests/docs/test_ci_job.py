"""The CI job on the page, run as a runner would run it: its script under bash that stops at the first failure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import ROOT, blocks, page, section

OPERATIONS = page("docs/operations.md")


def script() -> str:
    """What stands below the job's ``run: |``."""
    (job,) = blocks(section(OPERATIONS, "In CI"), "yaml")
    found = re.search(r"^( +)run: \|\n((?:\1 .*\n)+)", job, re.MULTILINE)
    assert found is not None
    return textwrap.dedent(found[2])


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder to leave files in, which is the runtime directory too: sockets want a short path."""
    path = Path(tempfile.mkdtemp(prefix="ci"))
    yield path
    shutil.rmtree(path)


@pytest.mark.slow
def test_the_job_passes_on_the_tiny_model(workspace: Path) -> None:
    """Only the model is another one, which is made and not fetched; and the server is ended here, as a runner ends what
    a job left behind."""
    fetch, _, text = script().partition("\n")
    assert fetch == 'specwb models fetch "$MODEL"'
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", f"trap 'kill $(jobs -pr) || true' EXIT\n{text}"],
        cwd=workspace,
        env={
            **os.environ,
            "MODEL": "tiny-random",
            "XDG_RUNTIME_DIR": str(workspace),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr + (workspace / "engine.log").read_text()
    assert done.stdout.count("passed: ") == 2
    (suite,) = ElementTree.parse(workspace / "check.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "0", "0")
    assert (workspace / "engine.log").read_text()

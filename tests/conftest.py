"""Shared fixtures. On CI a skipped test is a failure: everything it needs is meant to be there."""

import os
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped on CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def audit_data() -> Path:
    """The folder of public data sets."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("FAIRAUDIT_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"FAIRAUDIT_DATA: no folder {folder}")
    return folder

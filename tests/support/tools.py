"""Programs that tests need beside Python: curl, node, npm, nginx, openssl."""

from __future__ import annotations

import os
import shutil

import pytest

# Debian keeps servers where only root's PATH looks.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])


def require(name: str) -> str:
    """Return a program's path; without it a test is skipped, but fails where CI says it runs."""
    found = shutil.which(name, path=PATH)
    if found is not None:
        return found
    reason = f"{name} is not installed (`make tools` installs what the tests need)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)

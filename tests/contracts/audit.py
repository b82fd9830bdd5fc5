"""Known holes in the pinned packages, by pip-audit. Not a test; `make audit` runs it.

    python tests/contracts/audit.py constraints.txt

Exits with 0 when every package was looked up and none has a known hole, with 1 when one has, and with 3 when the tool
or its lists of holes cannot be had: what could not be looked up is not called safe.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any


def verdict(dependencies: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit code, and what to say, for pip-audit's list of dependencies."""
    skipped = [found["name"] for found in dependencies if "skip_reason" in found]
    holes = [
        f"{found['name']} {found['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version'}"
        for found in dependencies
        for hole in found.get("vulns", [])
    ]
    looked_up = len(dependencies) - len(skipped)
    said = [*holes, f"{looked_up} of {len(dependencies)} packages looked up, {len(holes)} known holes"]
    if skipped:
        said.append(f"not looked up, so nothing is known of them: {', '.join(skipped)}")
    return 1 if holes else 3 if skipped or not dependencies else 0, said


def main() -> int:
    if find_spec("pip_audit") is None:
        print("pip-audit is not installed (`make audit` gets it where it can be had): nothing was audited")
        return 3
    words = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "-f", "json", "-r", sys.argv[1]]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(told.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"the lists of known holes cannot be read here: nothing was audited\n{told.stderr.strip()[-500:]}")
        return 3
    code, said = verdict(dependencies)
    print("\n".join(said))
    return code


if __name__ == "__main__":
    sys.exit(main())

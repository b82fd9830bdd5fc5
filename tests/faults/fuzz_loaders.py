"""Coverage-guided fuzzing of the loaders, by atheris (libFuzzer). Not a test; `make fuzz` runs it.

    python tests/faults/fuzz_loaders.py all --seconds 60            every loader, a minute each
    python tests/faults/fuzz_loaders.py tokenizer --seconds 600     one of them
    python tests/faults/fuzz_loaders.py tokenizer --keep            add what reaches new code to the kept corpus

Starts from tests/faults/corpus/LOADER, collects in build/fuzz/LOADER. An input that breaks a loader is written into
the kept corpus (crash-…, timeout-…), where test_corpus.py finds it until it is mended, and ever after.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CORPUS, COLLECTED = HERE / "corpus", HERE.parents[1] / "build" / "fuzz"
LONGEST, SLOWEST, MEMORY = 20_000, 10, 4096


def options(name: str, seconds: int, keep: bool) -> list[str]:
    """libFuzzer's words for one loader."""
    collected, kept = COLLECTED / name, CORPUS / name
    for folder in (collected, kept):
        folder.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_len={LONGEST}", f"-timeout={SLOWEST}", f"-rss_limit_mb={MEMORY}", "-print_final_stats=1"]
    if keep:
        return ["-merge=1", *limits, str(kept), str(collected)]
    return [f"-max_total_time={seconds}", f"-artifact_prefix={kept}/", *limits, str(collected), str(kept)]


def fuzz(name: str, words: list[str]) -> None:
    """This process becomes the fuzzer of one loader."""
    import atheris

    with atheris.instrument_imports(include=["clearhead"], enable_loader_override=False):
        spec = importlib.util.spec_from_file_location("loaders", HERE / "loaders.py")
        assert spec is not None and spec.loader is not None
        loaders = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaders)
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup([sys.argv[0], *words], lambda data: loaders.load(name, data, Path(folder)) and None)
        atheris.Fuzz()


def names() -> list[str]:
    return sorted(path.name for path in CORPUS.iterdir() if path.is_dir())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loader", choices=["all", *names()])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed (`make fuzz` gets it where it can be had): nothing was fuzzed", file=sys.stderr)
        return 3
    if given.loader != "all":
        fuzz(given.loader, options(given.loader, given.seconds, given.keep))
        return 0
    words = ["--seconds", str(given.seconds), *(["--keep"] if given.keep else [])]
    broken = [n for n in names() if subprocess.run([sys.executable, __file__, n, *words], check=False).returncode]
    print(f"broken: {', '.join(broken)} (inputs in {CORPUS})" if broken else f"{len(names())} loaders: nothing found")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""How much memory writing synthetic records takes: a small file, then a large one, ours alone."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import fit_problems
import harness
from inference_ours import Asked

from juncture import Release


def main() -> None:
    """Write both files and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("problem", type=Path, help="problem file")
    parser.add_argument("--records", type=int, nargs=2, default=[250_000, 10_000_000])
    options = parser.parse_args()
    release = Release(model=Asked(fit_problems.load(options.problem)).model)
    found = []
    for n in options.records:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            path = Path(folder) / "records.parquet"
            release.write_records(path, n, rng=0, method="sample")
            seconds = time.perf_counter() - began
            size = path.stat().st_size
        found.append(
            {"records": n, "seconds": seconds, "bytes": size, "peak_bytes": harness.peak_bytes()}
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()

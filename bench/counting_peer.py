"""The peer's side of the counting comparison: its data set class counts pairs, one by one."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mbi


def main() -> None:
    """Count all pairs of a file of codes and print the seconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("codes", type=Path, help="an .npz file with a column for each attribute")
    options = parser.parse_args()
    with np.load(options.codes) as archive:
        columns = {name: archive[name] for name in archive.files if name != "sizes"}
        sizes = dict(zip(columns, archive["sizes"].tolist(), strict=True))
    domain = mbi.Domain.fromdict(sizes)
    data = mbi.Dataset(columns, domain)
    pairs, seconds = list(combinations(columns, 2)), []
    for _ in range(3):
        began = time.perf_counter()
        tables = [np.asarray(data.project(pair).datavector()) for pair in pairs]
        seconds.append(time.perf_counter() - began)
    shown = [float(table.sum()) for table in tables[:3]]
    print(json.dumps({"seconds": sorted(seconds)[1], "shown": shown}))


if __name__ == "__main__":
    main()

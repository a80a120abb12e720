"""What was recorded behind the paper's main figure: medians of five trials at epsilon 1.

Values with four digits or more are from printed output, the others are read off the bar charts
(within 0.006).
"""

from __future__ import annotations

RECORDED: dict[tuple[str, str], dict[str, float | None]] = {
    ("none", "uniform"): {"titanic": 0.637, "adult": 0.7006, "loans": 1.4527, "stroke": 1.8839},
    ("PrivBayes", "original"): {"titanic": 0.327, "adult": 0.128, "loans": 0.42, "stroke": 0.87},
    ("PrivBayes", "model"): {
        "titanic": 0.234415, "adult": 0.082846, "loans": 0.068925, "stroke": 0.137466,
    },
    ("DualQuery", "original"): {
        "titanic": 0.745, "adult": 0.432, "loans": 1.163, "stroke": 1.487,
    },
    ("DualQuery", "model"): {
        "titanic": 0.59909, "adult": 0.243769, "loans": 0.332449, "stroke": 0.336524,
    },
    ("MWEM", "original"): {"titanic": None, "adult": None, "loans": None, "stroke": 1.7646},
    ("MWEM", "model"): {"titanic": 0.3736, "adult": 0.3420, "loans": 1.512, "stroke": 1.76},
    ("HDMM", "original"): {
        "titanic": 1.9384, "adult": 0.2489, "loans": 2.4147, "stroke": 0.3507,
    },
    ("HDMM", "model"): {
        "titanic": 0.292712, "adult": 0.079535, "loans": 0.087647, "stroke": 0.056011,
    },
}  # fmt: skip

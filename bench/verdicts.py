"""What the measurements of this folder share: their binary, how figures are printed, and what must hold."""

import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def add_binary(parser):
    """The option that names the binary to measure."""
    parser.add_argument("--mydyno", default=os.environ.get("MYDYNO_BIN", str(ROOT / "target/release/mydyno")))


def spread(values, digits=2):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


class Verdicts:
    """What must hold, and whether it does."""

    def __init__(self):
        self.lines, self.missed = [], 0

    def judge(self, what, value, way, bound, unit="×"):
        holds = value <= bound if way == "<=" else value >= bound
        self.missed += not holds
        self.lines.append(f"{'holds ' if holds else 'MISSED'}  {what}: {value:.2f} {unit} (must be {way} {bound})")

    def end(self):
        """Prints what must hold; ends with 1 when something does not."""
        print("\n" + "\n".join(self.lines))
        sys.exit(1 if self.missed else 0)


def of_parts(parts, options):
    """Measures all parts, or the one that --only names; ends with 1 when something does not hold."""
    verdicts = Verdicts()
    for name, part in parts.items():
        if options.only in (None, name):
            part(options, verdicts)
    verdicts.end()

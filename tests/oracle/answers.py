"""What the scripts whose answers are for crates/stats share: the versions that they are made with, and how they are written."""
import json
import math
import pathlib

import numpy as np
import scipy
import statsmodels

MADE_WITH = {"numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__}


def plain(value, only_finite):
    """JSON's own kinds; what is not finite becomes null, unless only finite answers are expected."""
    if isinstance(value, dict):
        return {k: plain(v, only_finite) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v, only_finite) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    if isinstance(value, (np.floating, float)):
        return float(value) if only_finite or math.isfinite(value) else None
    return value


def write(name, out, only_finite=False):
    """Writes answers into a file beside the scripts; fails at one that is not finite where only finite ones are expected."""
    path = pathlib.Path(__file__).with_name(name)
    text = json.dumps(plain(out, only_finite), separators=(",", ":"), allow_nan=False)
    path.write_text(text + "\n")

"""Which values of scripts/knobs.toml a server does not start with; a part of scripts/knobs."""

import tomllib


def note_refused(server, knobs, path):
    """Adds `refused` to each knob that a server refuses values of."""
    for name, row in tomllib.loads(path.read_text()).items():
        if not (knob := knobs.get(name)) or not knob.get("option") or knob.get("values"):
            # What has a list is told by the list.
            continue
        option = f"--{name.replace('_', '-')}"
        comes_up = lambda value: any(
            server.again(*([w] if w else []), f"{option}={value}")[0] for w in row.get("with", [""]))
        values = row["values"] + (row.get("mysql", []) if server.engine.startswith("mysql") else [])
        knob["refused"] = [value for value in values if not comes_up(value)]
        server.again()

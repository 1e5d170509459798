"""Writes src/turnlog/data/models.json from a copy of litellm's model table.

    python scripts/models_table.py TABLE.json

Takes the fields that turnlog uses and shortens their names; source and date are copied along.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

OUT = Path(__file__).parent.parent / "src/turnlog/data/models.json"
MEDIA = {
    "supports_vision": "image",
    "supports_pdf_input": "document",
    "supports_audio_input": "audio",
    "supports_video_input": "video",
}
PRICES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached",
    "cache_creation_input_token_cost": "cache_write",
}


def main(source: str) -> None:
    table = json.loads(Path(source).read_text())
    models = {}
    for name, facts in sorted(table["models"].items()):
        models[name] = {
            "provider": facts["provider"],
            "input": facts.get("max_input_tokens"),
            "output": facts.get("max_output_tokens"),
            "media": [kind for flag, kind in MEDIA.items() if facts.get(flag)],
            "prices": {short: facts[key] for key, short in PRICES.items() if facts.get(key) is not None},
        }
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(facts, separators=(',', ':'))}" for name, facts in models.items()
    )
    OUT.write_text(f'{{"source":{json.dumps(table["source"])},\n"models":{{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main(sys.argv[1])

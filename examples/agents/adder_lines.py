"""The agent as a program that stays up."""

from __future__ import annotations

import json
import re
import sys

for line in sys.stdin:
    request = json.loads(line)
    total = sum(int(number) for number in re.findall(r"\d+", request["input"]))
    print(json.dumps({"id": request["id"], "output": str(total)}), flush=True)

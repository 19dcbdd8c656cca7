from __future__ import annotations

import json
import statistics
from timeit import Timer

from functions import empty

LOOPS = 20_000

calling, passing = Timer("empty()", globals={"empty": empty}), Timer("pass")
differences = [(calling.timeit(LOOPS) - passing.timeit(LOOPS)) / LOOPS for _ in range(100)]
print(json.dumps({"empty": statistics.median(differences)}))

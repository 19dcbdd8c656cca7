"""A simulation with the configuration that is quickest on this machine: python examples/run_with_recommended_config.py --agents 30 --steps 100

Which one that is, a log in a file or a log in memory that is copied at the end, is measured here, on the disk of the output, the first time that this
size is asked for. The measurement is kept; --measure repeats it.
"""

import argparse
import sys
from pathlib import Path

from assay import AssayError
from assay.simulation import recommend, simulate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--agents", type=int, default=30)
    parser.add_argument("--output", type=Path, default=Path("simulation_results"), help="folder of the log")
    parser.add_argument("--measure", action="store_true", help="measure anew which configuration to use")
    given = parser.parse_args()
    try:
        recommendation = recommend(given.agents, given.steps, given.output, is_fresh=given.measure)
        print(recommendation)
        result = simulate(recommendation.config, given.output / "simulation.db")
    except AssayError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    last = result.history[-1]
    print(f"{len(result.history)} steps took {result.seconds:.3f} s; {last.num_agents} agents are alive.")
    print(f"{result.settings['kept_rows']} rows were logged ({result.settings['mode']}): {result.database}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

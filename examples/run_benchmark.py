"""One prompt through several models, as often as you like: python examples/run_benchmark.py --models reference simulated --repetitions 2

`reference` and `simulated` need no key and no network. Any other name is an agent of your project, or else a model of an
OpenAI-compatible server: OPENAI_BASE_URL says where, OPENAI_API_KEY has the key.
"""

import argparse
import asyncio

from assay.workflow import BenchmarkMetrics, BenchmarkRunner


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["reference", "simulated"])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument(
        "--prompt", help="default: the task that ships with Assay, whose right results are known"
    )
    parser.add_argument("--description", default="")
    parser.add_argument("--output-dir", default="benchmarks")
    given = parser.parse_args()

    runner = BenchmarkRunner(given.output_dir, {"progress": True})
    benchmark = await runner.run_benchmark(given.prompt, given.models, given.repetitions, given.description)

    print(benchmark.result)
    print("Best values that were seen; the tables above say which differences are certain:")
    for figure, best in BenchmarkMetrics(benchmark.result).compare_models().items():
        print(f"{figure:<36} {', '.join(best['shared_by'])} ({best['value']:.4g})")
    print(f"Benchmark completed: {benchmark.benchmark_id}")
    print(f"Results saved to: {benchmark.benchmark_dir}")


if __name__ == "__main__":
    asyncio.run(main())

-- Every agent on every dimension, suite by suite: the column names of the performance specification, section 3.1, then our own.
CREATE {stored}VIEW agent_comparison_matrix AS
{ranking:suite}
SELECT
    contender AS agent_id,
    avg_accuracy,
    avg_speed,
    avg_efficiency,
    avg_cost,
    avg_reliability,
    accuracy_rank,
    speed_rank,
    efficiency_rank,
    cost_rank,
    reliability_rank,
    overall_score,
    overall_rank,
    workspaces.name AS workspace_id,
    suite AS suite_id,
    simulated = 1 AS simulated,
    completed AS benchmarks_completed,
    all_benchmarks AS benchmarks_total,
    latest AS last_benchmark_date
FROM board
JOIN workspaces ON workspaces.id = board.workspace_id

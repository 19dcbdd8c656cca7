-- Every rated trial of a suite on a benchmark that the suite still has, as rankings choose among them. A suite is what its latest
-- run was made with. is_current: 1 when the benchmark was asked as the suite has it now. is_whole: 1 when all of its cases were
-- done and nothing stopped the trial.
CREATE VIEW rated_trials AS
WITH newest AS (
    SELECT workspace_id, name, category, suite_id
      FROM (SELECT runs.workspace_id, suites.name, suites.category, suites.id AS suite_id,
                   ROW_NUMBER() OVER (
                       PARTITION BY runs.workspace_id, suites.name ORDER BY runs.started DESC, runs.id DESC) AS place
              FROM runs
              JOIN suites ON suites.id = runs.suite_id) AS used
     WHERE place = 1
)
SELECT
    ratings.trial_id,
    trials.run_id,
    runs.workspace_id,
    ratings.suite,
    newest.category,
    ratings.benchmark,
    ratings.benchmark_hash,
    ratings.contender,
    agents.name AS agent,
    agents.version AS agent_version,
    ratings.simulated,
    ratings.ok,
    ratings.cases,
    benchmarks.cases AS all_cases,
    (SELECT COUNT(*) FROM benchmarks AS every WHERE every.suite_id = newest.suite_id) AS all_benchmarks,
    CASE WHEN ratings.benchmark_hash = benchmarks.hash THEN 1 ELSE 0 END AS is_current,
    CASE WHEN ratings.cases >= benchmarks.cases AND trials.stopped IS NULL THEN 1 ELSE 0 END AS is_whole,
    CASE WHEN trials.stopped IS NULL THEN 0 ELSE 1 END AS is_stopped,
    runs.started,
    trials.ended,
    trials.accuracy,
    trials.speed,
    trials.efficiency,
    trials.cost,
    trials.reliability,
    {weight:accuracy} AS accuracy_weight,
    {weight:speed} AS speed_weight,
    {weight:efficiency} AS efficiency_weight,
    {weight:cost} AS cost_weight,
    {weight:reliability} AS reliability_weight,
    ratings.baseline
FROM ratings
JOIN trials ON trials.id = ratings.trial_id
JOIN runs ON runs.id = trials.run_id
JOIN agents ON agents.id = trials.agent_id
JOIN newest ON newest.workspace_id = runs.workspace_id AND newest.name = ratings.suite
JOIN benchmarks ON benchmarks.suite_id = newest.suite_id AND benchmarks.benchmark = ratings.benchmark

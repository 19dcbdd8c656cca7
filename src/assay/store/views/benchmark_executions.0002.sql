-- One row a trial, under the column names of the performance specification. Ids are names; scores go from 0 to 100.
-- status: 'success' when at least one measured execution was ok and the trial was not stopped; else the status of the last
-- execution that was not ok; else 'stopped'; else 'pending'.
-- Executions are looked up one by one rather than joined: right after a run PostgreSQL has no statistics of its rows and would
-- join them by trying every pair.
CREATE VIEW benchmark_executions AS
SELECT
    trials.id AS id,
    suites.name AS suite_id,
    trials.benchmark AS benchmark_id,
    agents.name AS agent_id,
    NULLIF(agents.version, '') AS agent_version,
    workspaces.name AS workspace_id,
    CAST(environments.facts AS {json}) AS execution_environment,
    CAST(trials.params AS {json}) AS model_configuration,
    trials.started AS start_time,
    trials.ended AS end_time,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN executions.loops END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq)) * 1000) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'seconds'
    ) AS total_duration_ms,
    trials.accuracy * 100 AS accuracy_score,
    trials.speed * 100 AS speed_score,
    trials.efficiency * 100 AS efficiency_score,
    trials.cost * 100 AS cost_score,
    trials.reliability * 100 AS reliability_score,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'tokens'
    ) AS tokens_used,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'api_calls'
    ) AS api_calls_made,
    (SELECT MAX(measurements.value) / 1048576.0
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'rss_max_bytes'
    ) AS memory_peak_mb,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'cpu_percent'
    ) AS cpu_usage_percent,
    CAST(NULL AS FLOAT) AS output_correctness,
    CAST(NULL AS FLOAT) AS output_completeness,
    CAST(NULL AS FLOAT) AS output_relevance,
    CAST(NULL AS FLOAT) AS percentile_rank,
    CAST(NULL AS FLOAT) AS deviation_from_baseline,
    CASE
        WHEN trials.stopped IS NULL AND EXISTS (
            SELECT 1 FROM executions
             WHERE executions.trial_id = trials.id AND executions.phase = 'measured' AND executions.status = 'ok'
        ) THEN 'success'
        ELSE COALESCE(
            (SELECT executions.status FROM executions
              WHERE executions.trial_id = trials.id AND executions.status <> 'ok'
              ORDER BY executions.seq DESC LIMIT 1),
            CASE WHEN trials.stopped IS NULL THEN 'pending' ELSE 'stopped' END)
    END AS status,
    COALESCE(
        (SELECT executions.error FROM executions
          WHERE executions.trial_id = trials.id AND executions.error IS NOT NULL
          ORDER BY executions.seq DESC LIMIT 1),
        trials.stopped) AS error_details,
    runs.started AS created_at
FROM trials
JOIN runs ON runs.id = trials.run_id
JOIN agents ON agents.id = trials.agent_id
JOIN workspaces ON workspaces.id = runs.workspace_id
JOIN environments ON environments.id = runs.environment_id
LEFT JOIN suites ON suites.id = runs.suite_id

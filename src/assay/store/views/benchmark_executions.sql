-- One row a trial, under the column names of the performance specification. Ids are names; scores go from 0 to 100.
-- status: 'success' when at least one measured execution was ok and the trial was not stopped; else the status of the last
-- execution that was not ok; else 'stopped'; else 'pending'.
-- What the executions of a trial add up to comes from `trial_totals`, or while its run goes on, from `live_trial_totals`.
-- Other agents are counted by their latest rated trial, simulated ones apart from the rest. The baseline is the run named like
-- the suite, else 'main', and in it the trial of the same agent, else the first one on the benchmark; but what the suite itself
-- states as its baseline goes first.
CREATE VIEW benchmark_executions AS
WITH latest AS MATERIALIZED (
    SELECT workspace_id, suite, benchmark, simulated, agent, overall
      FROM (SELECT runs.workspace_id, trials.suite, trials.benchmark, trials.simulated, agents.name AS agent, trials.overall,
                   ROW_NUMBER() OVER (
                       PARTITION BY runs.workspace_id, trials.suite, trials.benchmark, trials.simulated, agents.name
                       ORDER BY runs.started DESC, trials.id DESC) AS place
              FROM trials
              JOIN runs ON runs.id = trials.run_id
              JOIN agents ON agents.id = trials.agent_id
             WHERE trials.overall IS NOT NULL) AS rated
     WHERE place = 1
)
SELECT
    trials.id AS id,
    NULLIF(trials.suite, '') AS suite_id,
    trials.benchmark AS benchmark_id,
    agents.name AS agent_id,
    NULLIF(agents.version, '') AS agent_version,
    workspaces.name AS workspace_id,
    CAST(environments.facts AS {json}) AS execution_environment,
    CASE WHEN trials.agent_use IS NULL THEN CAST(trials.params AS {json}) ELSE {configuration} END AS model_configuration,
    trials.started AS start_time,
    trials.ended AS end_time,
    CASE WHEN totals.trial_id IS NULL THEN (SELECT live.duration_ms FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.duration_ms END AS total_duration_ms,
    trials.accuracy * 100 AS accuracy_score,
    trials.speed * 100 AS speed_score,
    trials.efficiency * 100 AS efficiency_score,
    trials.cost * 100 AS cost_score,
    trials.reliability * 100 AS reliability_score,
    CASE WHEN totals.trial_id IS NULL THEN (SELECT live.tokens FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.tokens END AS tokens_used,
    CASE WHEN totals.trial_id IS NULL THEN (SELECT live.api_calls FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.api_calls END AS api_calls_made,
    COALESCE(CASE WHEN totals.trial_id IS NULL THEN (SELECT live.rss_max_bytes FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.rss_max_bytes END,
        trials.peak_bytes) / 1048576.0 AS memory_peak_mb,
    COALESCE(CASE WHEN totals.trial_id IS NULL THEN (SELECT live.cpu_percent FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.cpu_percent END,
        100 * trials.cpu_seconds / NULLIF(trials.cpu_wall_seconds, 0)) AS cpu_usage_percent,
    COALESCE(CASE WHEN totals.trial_id IS NULL THEN (SELECT live.correctness FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.correctness END,
        CASE WHEN totals.trial_id IS NULL THEN (SELECT live.score FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.score END) AS output_correctness,
    CASE WHEN totals.trial_id IS NULL THEN (SELECT live.completeness FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.completeness END AS output_completeness,
    CASE WHEN totals.trial_id IS NULL THEN (SELECT live.relevance FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.relevance END AS output_relevance,
    (SELECT AVG(CASE WHEN trials.overall IS NULL THEN NULL WHEN latest.overall < trials.overall THEN CAST(100 AS FLOAT) ELSE 0 END)
       FROM latest
      WHERE latest.workspace_id = runs.workspace_id AND latest.suite = trials.suite AND latest.benchmark = trials.benchmark
        AND latest.simulated = trials.simulated AND latest.agent <> agents.name
    ) AS percentile_rank,
    trials.overall / NULLIF(COALESCE(trials.baseline_overall,
        -- Distances as columns: SQLite does not let ORDER BY look at the outer query.
        (SELECT reference.overall
           FROM (SELECT arm.overall, arm.position,
                        CASE WHEN baselines.name = trials.suite THEN 0 ELSE 1 END AS other_name,
                        CASE WHEN named.name = agents.name THEN 0 ELSE 1 END AS other_agent
                   FROM baselines
                   JOIN trials AS arm ON arm.run_id = baselines.run_id
                   JOIN agents AS named ON named.id = arm.agent_id
                  WHERE baselines.workspace_id = runs.workspace_id AND baselines.name IN (trials.suite, 'main')
                    AND arm.suite = trials.suite AND arm.benchmark = trials.benchmark AND arm.overall IS NOT NULL) AS reference
          ORDER BY reference.other_name, reference.other_agent, reference.position
          LIMIT 1)),
        0) - 1 AS deviation_from_baseline,
    CASE
        WHEN trials.stopped IS NULL AND CASE WHEN totals.trial_id IS NULL THEN (SELECT live.has_ok FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.has_ok END = 1 THEN 'success'
        ELSE COALESCE(CASE WHEN totals.trial_id IS NULL THEN (SELECT live.last_failure FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.last_failure END,
            CASE WHEN trials.stopped IS NULL THEN 'pending' ELSE 'stopped' END)
    END AS status,
    COALESCE(CASE WHEN totals.trial_id IS NULL THEN (SELECT live.last_error FROM live_trial_totals AS live WHERE live.trial_id = trials.id)
         ELSE totals.last_error END, trials.stopped) AS error_details,
    runs.started AS created_at
FROM trials
JOIN runs ON runs.id = trials.run_id
JOIN agents ON agents.id = trials.agent_id
JOIN workspaces ON workspaces.id = runs.workspace_id
JOIN environments ON environments.id = runs.environment_id
LEFT JOIN trial_totals AS totals ON totals.trial_id = trials.id

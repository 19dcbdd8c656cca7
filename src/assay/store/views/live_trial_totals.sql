-- What the executions of each trial add up to, worked out from them. `trial_totals` keeps it for trials of runs that have ended.
-- Executions are looked up one by one rather than joined: right after a run PostgreSQL has no statistics of its rows and would
-- join them by trying every pair.
CREATE VIEW live_trial_totals AS
SELECT
    trials.id AS trial_id,
    (SELECT COUNT(*) FROM executions WHERE executions.trial_id = trials.id) AS executions,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN executions.loops END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq)) * 1000) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'seconds'
    ) AS duration_ms,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'tokens'
    ) AS tokens,
    (SELECT CAST(ROUND(SUM(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))) AS BIGINT)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'api_calls'
    ) AS api_calls,
    (SELECT MAX(measurements.value)
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'rss_max_bytes'
    ) AS rss_max_bytes,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 1 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'cpu_percent'
    ) AS cpu_percent,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 100 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'score.correctness'
    ) AS correctness,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 100 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'score'
    ) AS score,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 100 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'score.completeness'
    ) AS completeness,
    (SELECT AVG(measurements.value * (
                SELECT CASE WHEN executions.phase = 'measured' THEN 100 END FROM executions
                 WHERE executions.trial_id = measurements.trial_id AND executions.seq = measurements.seq))
       FROM measurements
      WHERE measurements.trial_id = trials.id AND measurements.metric = 'score.relevance'
    ) AS relevance,
    CASE WHEN EXISTS (
        SELECT 1 FROM executions
         WHERE executions.trial_id = trials.id AND executions.phase = 'measured' AND executions.status = 'ok'
    ) THEN 1 ELSE 0 END AS has_ok,
    (SELECT executions.status FROM executions
      WHERE executions.trial_id = trials.id AND executions.status <> 'ok'
      ORDER BY executions.seq DESC LIMIT 1) AS last_failure,
    (SELECT executions.error FROM executions
      WHERE executions.trial_id = trials.id AND executions.error IS NOT NULL
      ORDER BY executions.seq DESC LIMIT 1) AS last_error
FROM trials

-- Of each agent the latest successful trial on each benchmark counts: one of the benchmark as it is now before one of an older
-- definition, one of all cases before one of a few. A dimension has a mean only where every one of these trials is rated on it.
-- overall_score is over the dimensions that all agents of the board have, by the weights of each benchmark's rubric. Who completed
-- more benchmarks stands before who completed fewer, and simulated agents are ranked among themselves. Scores go from 0 to 100.
-- These are ranks of figures: whether two agents are really apart is told by `assay leaderboard` and `assay matrix`.
WITH candidates AS (
    SELECT rated_trials.*,
           ROW_NUMBER() OVER (
               PARTITION BY workspace_id, suite, benchmark, contender
               ORDER BY is_current DESC, is_whole DESC, started DESC, trial_id DESC) AS place
      FROM rated_trials
     WHERE ok > 0 AND is_stopped = 0{since}
),
latest AS (SELECT * FROM candidates WHERE place = 1),
averages AS (
    SELECT workspace_id, {board}, contender,
           MIN(agent) AS agent,
           MAX(CASE WHEN simulated THEN 1 ELSE 0 END) AS simulated,
           COUNT(*) AS done,
           SUM(is_current * is_whole) AS completed,
           MAX(all_benchmarks) AS all_benchmarks,
           MAX(started) AS latest,
           CASE WHEN COUNT(accuracy) = COUNT(*) THEN AVG(accuracy) * 100 END AS avg_accuracy,
           CASE WHEN COUNT(speed) = COUNT(*) THEN AVG(speed) * 100 END AS avg_speed,
           CASE WHEN COUNT(efficiency) = COUNT(*) THEN AVG(efficiency) * 100 END AS avg_efficiency,
           CASE WHEN COUNT(cost) = COUNT(*) THEN AVG(cost) * 100 END AS avg_cost,
           CASE WHEN COUNT(reliability) = COUNT(*) THEN AVG(reliability) * 100 END AS avg_reliability
      FROM latest
     GROUP BY workspace_id, {board}, contender
),
shared AS (
    SELECT workspace_id, {board}, simulated,
           MIN(CASE WHEN avg_accuracy IS NULL THEN 0 ELSE 1 END) AS has_accuracy,
           MIN(CASE WHEN avg_speed IS NULL THEN 0 ELSE 1 END) AS has_speed,
           MIN(CASE WHEN avg_efficiency IS NULL THEN 0 ELSE 1 END) AS has_efficiency,
           MIN(CASE WHEN avg_cost IS NULL THEN 0 ELSE 1 END) AS has_cost,
           MIN(CASE WHEN avg_reliability IS NULL THEN 0 ELSE 1 END) AS has_reliability
      FROM averages
     GROUP BY workspace_id, {board}, simulated
),
weighed AS (
    SELECT workspace_id, {board}, contender,
           NULLIF(accuracy_weight * has_accuracy + speed_weight * has_speed + efficiency_weight * has_efficiency
                  + cost_weight * has_cost + reliability_weight * has_reliability, 0) AS weight,
           COALESCE(accuracy, 0) * accuracy_weight * has_accuracy + COALESCE(speed, 0) * speed_weight * has_speed
               + COALESCE(efficiency, 0) * efficiency_weight * has_efficiency + COALESCE(cost, 0) * cost_weight * has_cost
               + COALESCE(reliability, 0) * reliability_weight * has_reliability AS points
      FROM (SELECT workspace_id, {board}, contender, accuracy, speed, efficiency, cost, reliability, accuracy_weight,
                   speed_weight, efficiency_weight, cost_weight, reliability_weight FROM latest) AS trial
      JOIN averages USING (workspace_id, {board}, contender)
      JOIN shared USING (workspace_id, {board}, simulated)
),
totals AS (
    SELECT workspace_id, {board}, contender,
           CASE WHEN COUNT(weight) = COUNT(*) THEN AVG(points / weight) * 100 END AS overall_score
      FROM weighed
     GROUP BY workspace_id, {board}, contender
),
ranked AS (
    SELECT averages.*, totals.overall_score,
           RANK() OVER (accuracy_board ORDER BY completed DESC, avg_accuracy DESC) AS accuracy_place,
           RANK() OVER (speed_board ORDER BY completed DESC, avg_speed DESC) AS speed_place,
           RANK() OVER (efficiency_board ORDER BY completed DESC, avg_efficiency DESC) AS efficiency_place,
           RANK() OVER (cost_board ORDER BY completed DESC, avg_cost DESC) AS cost_place,
           RANK() OVER (reliability_board ORDER BY completed DESC, avg_reliability DESC) AS reliability_place,
           RANK() OVER (overall_board ORDER BY completed DESC, overall_score DESC) AS overall_place
      FROM averages
      JOIN totals USING (workspace_id, {board}, contender)
    WINDOW accuracy_board AS (PARTITION BY workspace_id, {board}, simulated, avg_accuracy IS NULL),
           speed_board AS (PARTITION BY workspace_id, {board}, simulated, avg_speed IS NULL),
           efficiency_board AS (PARTITION BY workspace_id, {board}, simulated, avg_efficiency IS NULL),
           cost_board AS (PARTITION BY workspace_id, {board}, simulated, avg_cost IS NULL),
           reliability_board AS (PARTITION BY workspace_id, {board}, simulated, avg_reliability IS NULL),
           overall_board AS (PARTITION BY workspace_id, {board}, simulated, overall_score IS NULL)
),
board AS (
    SELECT ranked.*,
           CASE WHEN avg_accuracy IS NOT NULL THEN accuracy_place END AS accuracy_rank,
           CASE WHEN avg_speed IS NOT NULL THEN speed_place END AS speed_rank,
           CASE WHEN avg_efficiency IS NOT NULL THEN efficiency_place END AS efficiency_rank,
           CASE WHEN avg_cost IS NOT NULL THEN cost_place END AS cost_rank,
           CASE WHEN avg_reliability IS NOT NULL THEN reliability_place END AS reliability_rank,
           CASE WHEN overall_score IS NOT NULL THEN overall_place END AS overall_rank
      FROM ranked
)

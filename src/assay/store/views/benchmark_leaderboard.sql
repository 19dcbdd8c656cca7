-- Agents by the category of suites, from runs of the last 30 days: the column names of the performance specification, section 5.1,
-- then our own. best_ranking is the best of an agent's ranks on single dimensions: what it is good at, not whether it leads.
CREATE VIEW benchmark_leaderboard AS
{ranking:category}
SELECT
    contender AS agent_id,
    agent AS agent_name,
    category AS benchmark_category,
    {object}(
        'accuracy', {object}('score', avg_accuracy, 'rank', accuracy_rank),
        'speed', {object}('score', avg_speed, 'rank', speed_rank),
        'efficiency', {object}('score', avg_efficiency, 'rank', efficiency_rank),
        'cost', {object}('score', avg_cost, 'rank', cost_rank),
        'reliability', {object}('score', avg_reliability, 'rank', reliability_rank)
    ) AS scores_and_ranks,
    completed AS benchmarks_completed,
    latest AS last_benchmark_date,
    (SELECT MIN(place)
       FROM (SELECT accuracy_rank AS place UNION ALL SELECT speed_rank UNION ALL SELECT efficiency_rank
             UNION ALL SELECT cost_rank UNION ALL SELECT reliability_rank) AS places) AS best_ranking,
    overall_score,
    overall_rank,
    workspaces.name AS workspace_id,
    simulated = 1 AS simulated
FROM board
JOIN workspaces ON workspaces.id = board.workspace_id
ORDER BY benchmark_category, simulated, overall_rank IS NULL, overall_rank

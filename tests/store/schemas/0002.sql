BEGIN TRANSACTION;
CREATE TABLE agents (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	version TEXT NOT NULL, 
	CONSTRAINT pk_agents PRIMARY KEY (id), 
	CONSTRAINT uq_agents UNIQUE (workspace_id, name, version), 
	CONSTRAINT fk_agents_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
INSERT INTO "agents" VALUES(1,1,'parser','');
INSERT INTO "agents" VALUES(2,1,'parser','1');
CREATE TABLE artifacts (
	id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	type TEXT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_artifacts PRIMARY KEY (id), 
	CONSTRAINT fk_artifacts_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
);
INSERT INTO "artifacts" VALUES(1,1,'remark.txt','remark',X'789CCB4E2D280100043301B5');
CREATE TABLE assay_revision (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT assay_revision_pkc PRIMARY KEY (version_num)
);
INSERT INTO "assay_revision" VALUES('0002');
CREATE TABLE baselines (
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	CONSTRAINT pk_baselines PRIMARY KEY (workspace_id, name), 
	CONSTRAINT fk_baselines_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_baselines_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "baselines" VALUES(1,'main','0ld-run');
CREATE TABLE environments (
	id INTEGER NOT NULL, 
	facts TEXT NOT NULL, 
	vcs TEXT NOT NULL, 
	doubts TEXT NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (id)
);
INSERT INTO "environments" VALUES(1,'{"os": "Linux", "cpu": {"model": "x", "cores": 2}, "load": [0.5, 0.25]}','{"commit": "abc", "dirty": false}','["the machine is noisy"]');
CREATE TABLE executions (
	trial_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	process INTEGER NOT NULL, 
	phase TEXT NOT NULL, 
	case_id TEXT NOT NULL, 
	repetition INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	started DOUBLE NOT NULL, 
	loops BIGINT NOT NULL, 
	output TEXT, 
	applied TEXT, 
	error TEXT, 
	log TEXT, 
	CONSTRAINT pk_executions PRIMARY KEY (trial_id, seq), 
	CONSTRAINT uq_executions UNIQUE (trial_id, process, phase, case_id, repetition), 
	CONSTRAINT fk_executions_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "executions" VALUES(1,0,0,'warmup','',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(1,1,0,'measured','',0,'ok',1772366400.0,1,'{"text": "ä"}','{"zeta": 1}',NULL,NULL);
INSERT INTO "executions" VALUES(1,2,0,'measured','',1,'failed',1772366401.0,1,NULL,NULL,'ValueError: no',NULL);
INSERT INTO "executions" VALUES(2,0,0,'measured','',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL);
CREATE TABLE measurements (
	trial_id INTEGER NOT NULL, 
	metric TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	CONSTRAINT pk_measurements PRIMARY KEY (trial_id, metric, seq), 
	CONSTRAINT fk_measurements_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "measurements" VALUES(1,'seconds',0,0.5);
INSERT INTO "measurements" VALUES(1,'seconds',1,0.5);
INSERT INTO "measurements" VALUES(2,'seconds',0,0.5);
CREATE TABLE runs (
	id TEXT NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	suite_id INTEGER, 
	environment_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	state TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	started DATETIME NOT NULL, 
	ended DATETIME, 
	seed BIGINT NOT NULL, 
	notes TEXT NOT NULL, 
	trial_order TEXT NOT NULL, 
	parallelism INTEGER NOT NULL, 
	executor TEXT NOT NULL, 
	load TEXT NOT NULL, 
	output_dir TEXT, 
	source TEXT NOT NULL, 
	instrument_costs TEXT NOT NULL, 
	unmeasured TEXT NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_runs_suite_id FOREIGN KEY(suite_id) REFERENCES suites (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id)
);
INSERT INTO "runs" VALUES('0ld-run',1,NULL,1,'elaborate','completed','me','2026-03-01 12:00:00.000000','2026-03-01 12:01:00.000000',1099511627776,'why','sequential',3,'elsewhere','["experiments.py"]','results','{"experiment": "noop", "zeta": [1, 2], "alpha": {"b": 1, "a": 2}}','{"timing": 1e-07}','{}');
CREATE TABLE suites (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	version TEXT NOT NULL, 
	category TEXT NOT NULL, 
	CONSTRAINT pk_suites PRIMARY KEY (id), 
	CONSTRAINT uq_suites UNIQUE (workspace_id, name, version), 
	CONSTRAINT fk_suites_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE tags (
	run_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	CONSTRAINT pk_tags PRIMARY KEY (run_id, tag), 
	CONSTRAINT fk_tags_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "tags" VALUES('0ld-run','db');
INSERT INTO "tags" VALUES('0ld-run','nightly');
CREATE TABLE trials (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	agent_id INTEGER NOT NULL, 
	benchmark TEXT NOT NULL, 
	experiment TEXT NOT NULL, 
	params TEXT NOT NULL, 
	axes TEXT NOT NULL, 
	iterations TEXT NOT NULL, 
	processes INTEGER NOT NULL, 
	instruments TEXT NOT NULL, 
	isolation TEXT NOT NULL, 
	limits TEXT NOT NULL, 
	started DATETIME, 
	ended DATETIME, 
	stopped TEXT, 
	accuracy DOUBLE, 
	speed DOUBLE, 
	efficiency DOUBLE, 
	cost DOUBLE, 
	reliability DOUBLE, 
	overall DOUBLE, 
	CONSTRAINT uq_trials UNIQUE (run_id, position), 
	CONSTRAINT fk_trials_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_trials_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id)
);
INSERT INTO "trials" VALUES(1,'0ld-run',0,'zeta=1, alpha=[2]',1,'parse','module:Parse','{"zeta": 1, "alpha": [2, {"deep": null}], "big": 1e+23, "text": "ä ✓", "yes": true}','{"zeta": 1, "alpha": [2, {"deep": null}]}','{"warmup": 2, "measured": 50, "until": {"interval": 0.1, "max": 50, "min": 7, "metric": "usd"}, "loops": null}',10,'[{"name": "timing", "options": {}}, {"name": "psutil", "options": {"interval_ms": 5}}]','cold','{"seconds": 1.5, "memory_bytes": 8589934592, "tokens": 100.0, "usd": 0.25}','2026-03-01 12:00:00.000000','2026-03-01 12:00:01.000000',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,'0ld-run',1,'trial 1',2,'parse','noop','{"size": 1}','{}','{"warmup": 0, "measured": 5, "until": null, "loops": 1}',1,'[{"name": "timing", "options": {}}]','process','{"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}','2026-03-01 12:00:00.000000','2026-03-01 12:00:00.500000',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE workspaces (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_workspaces PRIMARY KEY (id), 
	CONSTRAINT uq_workspaces UNIQUE (name)
);
INSERT INTO "workspaces" VALUES(1,'default');
CREATE INDEX ix_runs_started ON runs (started);
CREATE INDEX ix_baselines_run_id ON baselines (run_id);
CREATE INDEX ix_trials_agent_id ON trials (agent_id);
CREATE INDEX ix_artifacts_trial_id ON artifacts (trial_id);
CREATE VIEW benchmark_executions AS
SELECT
    trials.id AS id,
    suites.name AS suite_id,
    trials.benchmark AS benchmark_id,
    agents.name AS agent_id,
    NULLIF(agents.version, '') AS agent_version,
    workspaces.name AS workspace_id,
    CAST(environments.facts AS TEXT) AS execution_environment,
    CAST(trials.params AS TEXT) AS model_configuration,
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
LEFT JOIN suites ON suites.id = runs.suite_id;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('trials',2);
COMMIT;

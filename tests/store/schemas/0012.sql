BEGIN TRANSACTION;
CREATE TABLE agents (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	version TEXT NOT NULL, 
	definition TEXT, 
	CONSTRAINT pk_agents PRIMARY KEY (id), 
	CONSTRAINT uq_agents UNIQUE (workspace_id, name, version), 
	CONSTRAINT fk_agents_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
INSERT INTO "agents" VALUES(1,1,'parser','',NULL);
INSERT INTO "agents" VALUES(2,1,'parser','1',NULL);
INSERT INTO "agents" VALUES(3,1,'gpt','3',NULL);
INSERT INTO "agents" VALUES(4,1,'nop','',NULL);
CREATE TABLE alerts (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	text TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	due DATETIME NOT NULL, 
	sent DATETIME, 
	error TEXT NOT NULL, 
	CONSTRAINT pk_alerts PRIMARY KEY (id), 
	CONSTRAINT uq_alerts UNIQUE (workspace_id, "key"), 
	CONSTRAINT fk_alerts_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE api_keys (
	prefix TEXT NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	name TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	expires DATETIME, 
	revoked DATETIME, 
	last_used DATETIME, 
	CONSTRAINT pk_api_keys PRIMARY KEY (prefix), 
	CONSTRAINT fk_api_keys_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
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
INSERT INTO "assay_revision" VALUES('0012');
CREATE TABLE audit_log (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	"key" TEXT NOT NULL, 
	address TEXT NOT NULL, 
	method TEXT NOT NULL, 
	path TEXT NOT NULL, 
	status INTEGER NOT NULL, 
	CONSTRAINT pk_audit_log PRIMARY KEY (id), 
	CONSTRAINT fk_audit_log_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE baselines (
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	CONSTRAINT pk_baselines PRIMARY KEY (workspace_id, name), 
	CONSTRAINT fk_baselines_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_baselines_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "baselines" VALUES(1,'main','0ld-run');
INSERT INTO "baselines" VALUES(1,'kept','0ld-suite');
CREATE TABLE benchmarks (
	suite_id INTEGER NOT NULL, 
	benchmark TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	cases INTEGER NOT NULL, 
	CONSTRAINT pk_benchmarks PRIMARY KEY (suite_id, benchmark), 
	CONSTRAINT fk_benchmarks_suite_id FOREIGN KEY(suite_id) REFERENCES suites (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "benchmarks" VALUES(1,'sums',0,'sums-hash',2);
CREATE TABLE boards (
	workspace_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	category TEXT NOT NULL, 
	metric TEXT NOT NULL, 
	changes BIGINT NOT NULL, 
	computed DATETIME NOT NULL, 
	expires DATETIME NOT NULL, 
	document TEXT NOT NULL, 
	CONSTRAINT pk_boards PRIMARY KEY (workspace_id, suite, category, metric), 
	CONSTRAINT fk_boards_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE environments (
	id INTEGER NOT NULL, 
	facts TEXT NOT NULL, 
	vcs TEXT NOT NULL, 
	doubts TEXT NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (id)
);
INSERT INTO "environments" VALUES(1,'{"os": "Linux", "cpu": {"model": "x", "cores": 2}, "load": [0.5, 0.25]}','{"commit": "abc", "dirty": false}','["the machine is noisy"]');
INSERT INTO "environments" VALUES(2,'{"os": "Linux", "cpu": {"model": "x", "cores": 2}, "load": [0.5, 0.25]}','{"commit": "abc", "dirty": false}','["the machine is noisy"]');
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
	detail TEXT, 
	CONSTRAINT pk_executions PRIMARY KEY (trial_id, seq), 
	CONSTRAINT uq_executions UNIQUE (trial_id, process, phase, case_id, repetition), 
	CONSTRAINT fk_executions_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "executions" VALUES(1,0,0,'warmup','',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(1,1,0,'measured','',0,'ok',1772366400.0,1,'{"text": "ä"}','{"zeta": 1}',NULL,NULL,NULL);
INSERT INTO "executions" VALUES(1,2,0,'measured','',1,'failed',1772366401.0,1,NULL,NULL,'ValueError: no',NULL,NULL);
INSERT INTO "executions" VALUES(2,0,0,'measured','',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(3,0,0,'measured','c1',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(3,1,0,'measured','c1',1,'ok',1772366401.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(3,2,0,'measured','c2',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(3,3,0,'measured','c2',1,'ok',1772366401.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(4,0,0,'measured','c1',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(4,1,0,'measured','c1',1,'ok',1772366401.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(4,2,0,'measured','c2',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(4,3,0,'measured','c2',1,'ok',1772366401.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(5,0,0,'measured','c1',0,'ok',1772366400.0,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "executions" VALUES(5,1,0,'measured','c1',1,'ok',1772366401.0,1,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE gate_results (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	baseline TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	passed BOOLEAN NOT NULL, 
	losses TEXT NOT NULL, 
	CONSTRAINT pk_gate_results PRIMARY KEY (id), 
	CONSTRAINT fk_gate_results_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE labels (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	case_id TEXT NOT NULL, 
	author TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	note TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT pk_labels PRIMARY KEY (id), 
	CONSTRAINT uq_labels UNIQUE (trial_id, seq, author), 
	CONSTRAINT fk_labels_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_labels_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
);
CREATE TABLE leases (
	run_id TEXT NOT NULL, 
	token TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid BIGINT NOT NULL, 
	machine TEXT NOT NULL, 
	process_started TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	renewed DOUBLE NOT NULL, 
	expires DOUBLE NOT NULL, 
	batches BIGINT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (run_id), 
	CONSTRAINT fk_leases_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
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
INSERT INTO "measurements" VALUES(3,'score',0,1.0);
INSERT INTO "measurements" VALUES(3,'score',1,1.0);
INSERT INTO "measurements" VALUES(3,'score',2,1.0);
INSERT INTO "measurements" VALUES(3,'score',3,1.0);
INSERT INTO "measurements" VALUES(3,'seconds',0,0.5);
INSERT INTO "measurements" VALUES(3,'seconds',1,0.5);
INSERT INTO "measurements" VALUES(3,'seconds',2,0.5);
INSERT INTO "measurements" VALUES(3,'seconds',3,0.5);
INSERT INTO "measurements" VALUES(3,'usd',0,0.001);
INSERT INTO "measurements" VALUES(3,'usd',1,0.001);
INSERT INTO "measurements" VALUES(3,'usd',2,0.001);
INSERT INTO "measurements" VALUES(3,'usd',3,0.001);
INSERT INTO "measurements" VALUES(4,'score',0,0.0);
INSERT INTO "measurements" VALUES(4,'score',1,0.0);
INSERT INTO "measurements" VALUES(4,'score',2,0.0);
INSERT INTO "measurements" VALUES(4,'score',3,0.0);
INSERT INTO "measurements" VALUES(4,'seconds',0,0.5);
INSERT INTO "measurements" VALUES(4,'seconds',1,0.5);
INSERT INTO "measurements" VALUES(4,'seconds',2,0.5);
INSERT INTO "measurements" VALUES(4,'seconds',3,0.5);
INSERT INTO "measurements" VALUES(4,'usd',0,0.001);
INSERT INTO "measurements" VALUES(4,'usd',1,0.001);
INSERT INTO "measurements" VALUES(4,'usd',2,0.001);
INSERT INTO "measurements" VALUES(4,'usd',3,0.001);
INSERT INTO "measurements" VALUES(5,'score',0,0.5);
INSERT INTO "measurements" VALUES(5,'score',1,0.5);
INSERT INTO "measurements" VALUES(5,'seconds',0,0.5);
INSERT INTO "measurements" VALUES(5,'seconds',1,0.5);
INSERT INTO "measurements" VALUES(5,'usd',0,0.001);
INSERT INTO "measurements" VALUES(5,'usd',1,0.001);
CREATE TABLE opportunities (
	workspace_id INTEGER NOT NULL, 
	agent TEXT NOT NULL, 
	place TEXT NOT NULL, 
	category TEXT NOT NULL, 
	location TEXT NOT NULL, 
	impact DOUBLE NOT NULL, 
	run_id TEXT NOT NULL, 
	found DATETIME NOT NULL, 
	resolved DATETIME, 
	CONSTRAINT pk_opportunities PRIMARY KEY (workspace_id, agent, place, category, location), 
	CONSTRAINT fk_opportunities_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE queued_runs (
	id TEXT NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	agent TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	configuration TEXT NOT NULL, 
	state TEXT NOT NULL, 
	error TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	created DATETIME NOT NULL, 
	owner TEXT, 
	renewed DOUBLE NOT NULL, 
	CONSTRAINT pk_queued_runs PRIMARY KEY (id), 
	CONSTRAINT fk_queued_runs_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE rating_references (
	workspace_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	benchmark TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	quantity TEXT NOT NULL, 
	value DOUBLE NOT NULL, 
	run_id TEXT NOT NULL, 
	ended DATETIME NOT NULL, 
	origin TEXT NOT NULL, 
	CONSTRAINT pk_rating_references PRIMARY KEY (workspace_id, suite, benchmark, hash, simulated, quantity), 
	CONSTRAINT fk_rating_references_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE ratings (
	trial_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	benchmark TEXT NOT NULL, 
	benchmark_hash TEXT NOT NULL, 
	contender TEXT NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	ok INTEGER NOT NULL, 
	cases INTEGER NOT NULL, 
	baseline TEXT, 
	weights TEXT NOT NULL, 
	digest TEXT, 
	dimensions TEXT, 
	summary TEXT, 
	marks BLOB, 
	case_names BLOB, 
	CONSTRAINT pk_ratings PRIMARY KEY (trial_id), 
	CONSTRAINT fk_ratings_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
);
INSERT INTO "ratings" VALUES(3,'kept','sums','sums-hash','gpt',false,4,2,NULL,'{"accuracy": 0.3, "speed": 0.2, "efficiency": 0.2, "cost": 0.15, "reliability": 0.15}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "ratings" VALUES(4,'kept','sums','sums-hash','nop',false,4,2,NULL,'{"accuracy": 0.3, "speed": 0.2, "efficiency": 0.2, "cost": 0.15, "reliability": 0.15}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "ratings" VALUES(5,'kept','sums','sums-hash','nop[size=2]',false,2,1,NULL,'{"accuracy": 0.3, "speed": 0.2, "efficiency": 0.2, "cost": 0.15, "reliability": 0.15}',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE regression_changes (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	regression TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	author TEXT NOT NULL, 
	state TEXT NOT NULL, 
	note TEXT NOT NULL, 
	CONSTRAINT pk_regression_changes PRIMARY KEY (id), 
	CONSTRAINT fk_regression_changes_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE regressions (
	workspace_id INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	agent TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	benchmark TEXT NOT NULL, 
	metric TEXT NOT NULL, 
	version_before TEXT NOT NULL, 
	version_after TEXT NOT NULL, 
	state TEXT NOT NULL, 
	note TEXT NOT NULL, 
	detected DATETIME NOT NULL, 
	changed DATETIME NOT NULL, 
	is_marked BOOLEAN NOT NULL, 
	figures TEXT NOT NULL, 
	CONSTRAINT pk_regressions PRIMARY KEY (workspace_id, id), 
	CONSTRAINT fk_regressions_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
INSERT INTO "regressions" VALUES(1,'abc123','stub','','parse','seconds','1','2','detected','','2026-05-04 12:00:00.000000','2026-05-04 12:00:00.000000',false,'{}');
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
	budget TEXT DEFAULT '{}' NOT NULL, question TEXT, label TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_runs_suite_id FOREIGN KEY(suite_id) REFERENCES suites (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id)
);
INSERT INTO "runs" VALUES('0ld-run',1,NULL,1,'elaborate','completed','me','2026-03-01 12:00:00.000000','2026-03-01 12:01:00.000000',1099511627776,'why','sequential',3,'elsewhere','["experiments.py"]','results','{"experiment": "noop", "zeta": [1, 2], "alpha": {"b": 1, "a": 2}}','{"timing": 1e-07}','{}','{"usd": null, "tokens": null}',NULL,'');
INSERT INTO "runs" VALUES('0ld-suite',1,1,2,'kept','completed','me','2026-03-01 13:00:00.000000','2026-03-01 13:01:00.000000',7,'','interleaved',1,'local','[]',NULL,'{}','{}','{}','{"usd": null, "tokens": null}',NULL,'');
CREATE TABLE scheduled_runs (
	workspace_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	due DATETIME NOT NULL, 
	agent TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	error TEXT NOT NULL, 
	CONSTRAINT pk_scheduled_runs PRIMARY KEY (workspace_id, suite, due, agent), 
	CONSTRAINT fk_scheduled_runs_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE schedules (
	workspace_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	expression TEXT NOT NULL, 
	zone TEXT NOT NULL, 
	due DATETIME NOT NULL, 
	CONSTRAINT pk_schedules PRIMARY KEY (workspace_id, suite), 
	CONSTRAINT fk_schedules_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE sessions (
	hash TEXT NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	prefix TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	expires DATETIME NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (hash), 
	CONSTRAINT fk_sessions_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT fk_sessions_prefix FOREIGN KEY(prefix) REFERENCES api_keys (prefix) ON DELETE CASCADE
);
CREATE TABLE suite_changes (
	workspace_id INTEGER NOT NULL, 
	suite TEXT NOT NULL, 
	changes BIGINT NOT NULL, 
	CONSTRAINT pk_suite_changes PRIMARY KEY (workspace_id, suite), 
	CONSTRAINT fk_suite_changes_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
CREATE TABLE suites (
	id INTEGER NOT NULL, 
	workspace_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	version TEXT NOT NULL, 
	category TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	definition TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	registered BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_suites PRIMARY KEY (id), 
	CONSTRAINT uq_suites UNIQUE (workspace_id, name, version, hash, digest), 
	CONSTRAINT fk_suites_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);
INSERT INTO "suites" VALUES(1,1,'kept','1','speed','s1','44c7700d35f48dd2','{"name": "kept", "version": "1", "category": "speed", "benchmarks": [{"id": "sums", "name": "sums", "cases": [{"id": "c1", "input": "1+1", "expected": "2", "turns": [], "tools": [], "files": {}, "tags": [], "metadata": {}}, {"id": "c2", "input": "2+2", "expected": "4", "turns": [], "tools": [], "files": {}, "tags": [], "metadata": {}}], "description": "", "test_type": "synthetic", "experiment": "ask", "scorers": [], "iterations": {"warmup": 3, "measured": 5, "until": null, "loops": 1}, "limits": {"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}, "rubric": {"weights": {}, "reference": {}, "pass_mark": 0.5}, "dataset": {}, "metrics_measured": [], "hash": "sums-hash"}], "description": "", "baseline_scores": {}, "schedule": null, "hash": "s1"}','2026-03-01 13:00:00.000000',false);
CREATE TABLE tags (
	run_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	CONSTRAINT pk_tags PRIMARY KEY (run_id, tag), 
	CONSTRAINT fk_tags_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "tags" VALUES('0ld-run','db');
INSERT INTO "tags" VALUES('0ld-run','nightly');
CREATE TABLE trial_totals (
	trial_id INTEGER NOT NULL, 
	executions INTEGER NOT NULL, 
	duration_ms BIGINT, 
	tokens BIGINT, 
	api_calls BIGINT, 
	rss_max_bytes DOUBLE, 
	cpu_percent DOUBLE, 
	correctness DOUBLE, 
	score DOUBLE, 
	completeness DOUBLE, 
	relevance DOUBLE, 
	has_ok INTEGER NOT NULL, 
	last_failure TEXT, 
	last_error TEXT, 
	CONSTRAINT pk_trial_totals PRIMARY KEY (trial_id), 
	CONSTRAINT fk_trial_totals_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id) ON DELETE CASCADE
);
INSERT INTO "trial_totals" VALUES(1,3,500,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'failed','ValueError: no');
INSERT INTO "trial_totals" VALUES(2,1,500,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL);
INSERT INTO "trial_totals" VALUES(3,4,2000,NULL,NULL,NULL,NULL,NULL,100.0,NULL,NULL,1,NULL,NULL);
INSERT INTO "trial_totals" VALUES(4,4,2000,NULL,NULL,NULL,NULL,NULL,0.0,NULL,NULL,1,NULL,NULL);
INSERT INTO "trial_totals" VALUES(5,2,1000,NULL,NULL,NULL,NULL,NULL,50.0,NULL,NULL,1,NULL,NULL);
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
	agent_use TEXT, 
	suite TEXT DEFAULT '' NOT NULL, 
	cases TEXT DEFAULT '[]' NOT NULL, 
	concurrency INTEGER DEFAULT '1' NOT NULL, 
	benchmark_hash TEXT DEFAULT '' NOT NULL, 
	simulated BOOLEAN DEFAULT 0 NOT NULL, cpu_seconds DOUBLE, cpu_wall_seconds DOUBLE, peak_bytes BIGINT, baseline_overall DOUBLE, cleanup TEXT, 
	CONSTRAINT uq_trials UNIQUE (run_id, position), 
	CONSTRAINT fk_trials_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_trials_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id)
);
INSERT INTO "trials" VALUES(1,'0ld-run',0,'zeta=1, alpha=[2]',1,'parse','module:Parse','{"zeta": 1, "alpha": [2, {"deep": null}], "big": 1e+23, "text": "ä ✓", "yes": true}','{"zeta": 1, "alpha": [2, {"deep": null}]}','{"warmup": 2, "measured": 50, "until": {"interval": 0.1, "max": 50, "min": 7, "metric": "usd"}, "loops": null}',10,'[{"name": "timing", "options": {}}, {"name": "psutil", "options": {"interval_ms": 5}}]','cold','{"seconds": 1.5, "memory_bytes": 8589934592, "tokens": 100.0, "usd": 0.25}','2026-03-01 12:00:00.000000','2026-03-01 12:00:01.000000',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'','[]',1,'',false,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,'0ld-run',1,'trial 1',2,'parse','noop','{"size": 1}','{}','{"warmup": 0, "measured": 5, "until": null, "loops": 1}',1,'[{"name": "timing", "options": {}}]','process','{"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}','2026-03-01 12:00:00.000000','2026-03-01 12:00:00.500000',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'','[]',1,'',false,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(3,'0ld-suite',0,'sums · gpt',3,'sums','ask','{"temperature": 0}','{}','{"warmup": 0, "measured": 2, "until": null, "loops": 1}',1,'[{"name": "timing", "options": {}}]','process','{"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}','2026-03-01 12:00:00.000000','2026-03-01 12:00:01.500000',NULL,1.0,0.5,NULL,0.625,1.0,8.04687499999999888977e-01,'{"name": "gpt", "type": "openai", "options": {"model": "small", "base_url": "${BASE_URL}", "params": {"temperature": 0, "stop": [".", null]}}, "version": "3", "price": {"input": 0.15, "output": 0.6}, "folder": "agents"}','kept','["c1", "c2"]',8,'sums-hash',false,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(4,'0ld-suite',1,'sums · nop',4,'sums','ask','{"temperature": 0}','{}','{"warmup": 0, "measured": 2, "until": null, "loops": 1}',1,'[{"name": "timing", "options": {}}]','process','{"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}','2026-03-01 12:00:00.000000','2026-03-01 12:00:01.500000',NULL,0.0,0.5,NULL,0.0,1.0,0.3125,'{"name": "nop", "type": "nop", "options": {}, "version": "", "price": null, "folder": ""}','kept','["c1", "c2"]',8,'sums-hash',false,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(5,'0ld-suite',2,'sums · nop[size=2]',4,'sums','ask','{"size": 2}','{"size": 2}','{"warmup": 0, "measured": 2, "until": null, "loops": 1}',1,'[{"name": "timing", "options": {}}]','process','{"seconds": null, "memory_bytes": null, "tokens": null, "usd": null}','2026-03-01 12:00:00.000000','2026-03-01 12:00:01.500000',NULL,0.5,0.5,NULL,0.625,1.0,0.6171875,'{"name": "nop", "type": "nop", "options": {}, "version": "", "price": null, "folder": ""}','kept','["c1", "c2"]',8,'sums-hash',false,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE workspaces (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_workspaces PRIMARY KEY (id), 
	CONSTRAINT uq_workspaces UNIQUE (name)
);
INSERT INTO "workspaces" VALUES(1,'default');
CREATE INDEX ix_baselines_run_id ON baselines (run_id);
CREATE INDEX ix_trials_agent_id ON trials (agent_id);
CREATE INDEX ix_artifacts_trial_id ON artifacts (trial_id);
CREATE INDEX ix_ratings_suite ON ratings (suite);
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
    json_extract(ratings.weights, '$.accuracy') AS accuracy_weight,
    json_extract(ratings.weights, '$.speed') AS speed_weight,
    json_extract(ratings.weights, '$.efficiency') AS efficiency_weight,
    json_extract(ratings.weights, '$.cost') AS cost_weight,
    json_extract(ratings.weights, '$.reliability') AS reliability_weight,
    ratings.baseline
FROM ratings
JOIN trials ON trials.id = ratings.trial_id
JOIN runs ON runs.id = trials.run_id
JOIN agents ON agents.id = trials.agent_id
JOIN newest ON newest.workspace_id = runs.workspace_id AND newest.name = ratings.suite
JOIN benchmarks ON benchmarks.suite_id = newest.suite_id AND benchmarks.benchmark = ratings.benchmark;
CREATE VIEW agent_comparison_matrix AS
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
     WHERE ok > 0 AND is_stopped = 0
),
latest AS (SELECT * FROM candidates WHERE place = 1),
averages AS (
    SELECT workspace_id, suite, contender,
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
     GROUP BY workspace_id, suite, contender
),
shared AS (
    SELECT workspace_id, suite, simulated,
           MIN(CASE WHEN avg_accuracy IS NULL THEN 0 ELSE 1 END) AS has_accuracy,
           MIN(CASE WHEN avg_speed IS NULL THEN 0 ELSE 1 END) AS has_speed,
           MIN(CASE WHEN avg_efficiency IS NULL THEN 0 ELSE 1 END) AS has_efficiency,
           MIN(CASE WHEN avg_cost IS NULL THEN 0 ELSE 1 END) AS has_cost,
           MIN(CASE WHEN avg_reliability IS NULL THEN 0 ELSE 1 END) AS has_reliability
      FROM averages
     GROUP BY workspace_id, suite, simulated
),
weighed AS (
    SELECT workspace_id, suite, contender,
           NULLIF(accuracy_weight * has_accuracy + speed_weight * has_speed + efficiency_weight * has_efficiency
                  + cost_weight * has_cost + reliability_weight * has_reliability, 0) AS weight,
           COALESCE(accuracy, 0) * accuracy_weight * has_accuracy + COALESCE(speed, 0) * speed_weight * has_speed
               + COALESCE(efficiency, 0) * efficiency_weight * has_efficiency + COALESCE(cost, 0) * cost_weight * has_cost
               + COALESCE(reliability, 0) * reliability_weight * has_reliability AS points
      FROM (SELECT workspace_id, suite, contender, accuracy, speed, efficiency, cost, reliability, accuracy_weight,
                   speed_weight, efficiency_weight, cost_weight, reliability_weight FROM latest) AS trial
      JOIN averages USING (workspace_id, suite, contender)
      JOIN shared USING (workspace_id, suite, simulated)
),
totals AS (
    SELECT workspace_id, suite, contender,
           CASE WHEN COUNT(weight) = COUNT(*) THEN AVG(points / weight) * 100 END AS overall_score
      FROM weighed
     GROUP BY workspace_id, suite, contender
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
      JOIN totals USING (workspace_id, suite, contender)
    WINDOW accuracy_board AS (PARTITION BY workspace_id, suite, simulated, avg_accuracy IS NULL),
           speed_board AS (PARTITION BY workspace_id, suite, simulated, avg_speed IS NULL),
           efficiency_board AS (PARTITION BY workspace_id, suite, simulated, avg_efficiency IS NULL),
           cost_board AS (PARTITION BY workspace_id, suite, simulated, avg_cost IS NULL),
           reliability_board AS (PARTITION BY workspace_id, suite, simulated, avg_reliability IS NULL),
           overall_board AS (PARTITION BY workspace_id, suite, simulated, overall_score IS NULL)
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
JOIN workspaces ON workspaces.id = board.workspace_id;
CREATE VIEW benchmark_leaderboard AS
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
     WHERE ok > 0 AND is_stopped = 0 AND started > datetime('now', '-30 days')
),
latest AS (SELECT * FROM candidates WHERE place = 1),
averages AS (
    SELECT workspace_id, category, contender,
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
     GROUP BY workspace_id, category, contender
),
shared AS (
    SELECT workspace_id, category, simulated,
           MIN(CASE WHEN avg_accuracy IS NULL THEN 0 ELSE 1 END) AS has_accuracy,
           MIN(CASE WHEN avg_speed IS NULL THEN 0 ELSE 1 END) AS has_speed,
           MIN(CASE WHEN avg_efficiency IS NULL THEN 0 ELSE 1 END) AS has_efficiency,
           MIN(CASE WHEN avg_cost IS NULL THEN 0 ELSE 1 END) AS has_cost,
           MIN(CASE WHEN avg_reliability IS NULL THEN 0 ELSE 1 END) AS has_reliability
      FROM averages
     GROUP BY workspace_id, category, simulated
),
weighed AS (
    SELECT workspace_id, category, contender,
           NULLIF(accuracy_weight * has_accuracy + speed_weight * has_speed + efficiency_weight * has_efficiency
                  + cost_weight * has_cost + reliability_weight * has_reliability, 0) AS weight,
           COALESCE(accuracy, 0) * accuracy_weight * has_accuracy + COALESCE(speed, 0) * speed_weight * has_speed
               + COALESCE(efficiency, 0) * efficiency_weight * has_efficiency + COALESCE(cost, 0) * cost_weight * has_cost
               + COALESCE(reliability, 0) * reliability_weight * has_reliability AS points
      FROM (SELECT workspace_id, category, contender, accuracy, speed, efficiency, cost, reliability, accuracy_weight,
                   speed_weight, efficiency_weight, cost_weight, reliability_weight FROM latest) AS trial
      JOIN averages USING (workspace_id, category, contender)
      JOIN shared USING (workspace_id, category, simulated)
),
totals AS (
    SELECT workspace_id, category, contender,
           CASE WHEN COUNT(weight) = COUNT(*) THEN AVG(points / weight) * 100 END AS overall_score
      FROM weighed
     GROUP BY workspace_id, category, contender
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
      JOIN totals USING (workspace_id, category, contender)
    WINDOW accuracy_board AS (PARTITION BY workspace_id, category, simulated, avg_accuracy IS NULL),
           speed_board AS (PARTITION BY workspace_id, category, simulated, avg_speed IS NULL),
           efficiency_board AS (PARTITION BY workspace_id, category, simulated, avg_efficiency IS NULL),
           cost_board AS (PARTITION BY workspace_id, category, simulated, avg_cost IS NULL),
           reliability_board AS (PARTITION BY workspace_id, category, simulated, avg_reliability IS NULL),
           overall_board AS (PARTITION BY workspace_id, category, simulated, overall_score IS NULL)
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

SELECT
    contender AS agent_id,
    agent AS agent_name,
    category AS benchmark_category,
    json_object(
        'accuracy', json_object('score', avg_accuracy, 'rank', accuracy_rank),
        'speed', json_object('score', avg_speed, 'rank', speed_rank),
        'efficiency', json_object('score', avg_efficiency, 'rank', efficiency_rank),
        'cost', json_object('score', avg_cost, 'rank', cost_rank),
        'reliability', json_object('score', avg_reliability, 'rank', reliability_rank)
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
ORDER BY benchmark_category, simulated, overall_rank IS NULL, overall_rank;
CREATE INDEX ix_regressions_agent ON regressions (agent);
CREATE INDEX ix_queued_runs_state ON queued_runs (state);
CREATE INDEX ix_sessions_expires ON sessions (expires);
CREATE INDEX ix_scheduled_runs_outcome ON scheduled_runs (outcome);
CREATE INDEX ix_alerts_state ON alerts (state);
CREATE INDEX ix_regression_changes_regression ON regression_changes (regression);
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
FROM trials;
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
    CAST(environments.facts AS TEXT) AS execution_environment,
    CASE WHEN trials.agent_use IS NULL THEN CAST(trials.params AS TEXT) ELSE json_object('type', json_extract(trials.agent_use, '$.type'), 'model', json_extract(trials.agent_use, '$.options.model'), 'params', json_extract(trials.agent_use, '$.options.params')) END AS model_configuration,
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
LEFT JOIN trial_totals AS totals ON totals.trial_id = trials.id;
CREATE INDEX ix_runs_workspace_id ON runs (workspace_id, started, id);
CREATE INDEX ix_runs_suite_id ON runs (suite_id, started);
CREATE INDEX ix_trials_suite ON trials (suite, benchmark, run_id);
CREATE INDEX ix_tags_tag ON tags (tag);
CREATE INDEX ix_trials_coverage ON trials (agent_id, suite, started, run_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('trials',5);
COMMIT;

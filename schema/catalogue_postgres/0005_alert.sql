-- Schema 5, as schema/catalogue/0005_alert.sql, which documents its tables.

CREATE TABLE alert_rule (
	project_id TEXT COLLATE "C" NOT NULL,
	rule_id TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	kind BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	percentile BIGINT NOT NULL,
	limit_micro BIGINT NOT NULL,
	least BIGINT NOT NULL,
	days BIGINT NOT NULL,
	mail BIGINT NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, rule_id)
);

CREATE TABLE alert (
	project_id TEXT COLLATE "C" NOT NULL,
	alert_id TEXT COLLATE "C" NOT NULL,
	rule_id TEXT COLLATE "C" NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	subject TEXT COLLATE "C" NOT NULL,
	title TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	value_micro BIGINT NOT NULL,
	traces BIGINT NOT NULL,
	is_over BIGINT NOT NULL,
	told BIGINT NOT NULL DEFAULT 0,
	told_ms BIGINT NOT NULL DEFAULT 0,
	quiet BIGINT NOT NULL DEFAULT 0,
	status BIGINT NOT NULL,
	fixed_in TEXT COLLATE "C" NOT NULL DEFAULT '',
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	note TEXT COLLATE "C" NOT NULL DEFAULT '',
	muted_until_ms BIGINT NOT NULL DEFAULT 0,
	first_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, alert_id)
);

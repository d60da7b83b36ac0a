-- Schema 5: alert rules of a project, and the figures that exceeded their limits.

CREATE TABLE alert_rule (
	project_id TEXT NOT NULL,
	rule_id TEXT NOT NULL,
	name TEXT NOT NULL,
	kind INTEGER NOT NULL,        -- server/catalogue/notify/alert_kinds.def
	app TEXT NOT NULL,            -- '' any; so are the next two
	scenario TEXT NOT NULL,
	version_name TEXT NOT NULL,
	percentile INTEGER NOT NULL,  -- of times
	limit_micro INTEGER NOT NULL, -- millionths of the kind's unit
	least INTEGER NOT NULL,       -- traces or reports that a figure needs
	days INTEGER NOT NULL,        -- that it covers
	mail INTEGER NOT NULL,        -- 1: also to the addresses of the digest
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, rule_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert (
	project_id TEXT NOT NULL,
	alert_id TEXT NOT NULL,           -- hash of rule, app and subject
	rule_id TEXT NOT NULL,
	app TEXT NOT NULL,
	subject TEXT NOT NULL,            -- version, or key of the ANR group
	title TEXT NOT NULL,              -- of the ANR group
	trace_id TEXT NOT NULL,           -- evidence
	value_micro INTEGER NOT NULL,
	traces INTEGER NOT NULL,
	is_over INTEGER NOT NULL,         -- 1 until the figure is clearly below the limit
	told INTEGER NOT NULL DEFAULT 0,    -- number of events sent
	told_ms INTEGER NOT NULL DEFAULT 0, -- time of the last event that was not its end
	quiet INTEGER NOT NULL DEFAULT 0,   -- 1: no event was sent for the current excess
	status INTEGER NOT NULL,          -- as in regression
	fixed_in TEXT NOT NULL DEFAULT '',
	owner TEXT NOT NULL DEFAULT '',
	note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, alert_id)
) STRICT, WITHOUT ROWID;

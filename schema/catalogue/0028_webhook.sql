-- Whom a project tells what happens, what is still to be told, and what a regression went through.
CREATE TABLE webhook (
	project_id TEXT NOT NULL,
	hook_id TEXT NOT NULL,
	name TEXT NOT NULL,
	url TEXT NOT NULL,             -- may be a secret itself
	kind INTEGER NOT NULL,         -- of body: server/hook.h
	events INTEGER NOT NULL,       -- a bit each
	secret TEXT NOT NULL,          -- it signs, so a hash of it would not do
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	delivered_ms INTEGER NOT NULL DEFAULT 0, -- the last time that something came through
	failing_ms INTEGER NOT NULL DEFAULT 0,   -- nothing did since; 0: it works
	fails INTEGER NOT NULL DEFAULT 0,        -- tries in a row
	hold_ms INTEGER NOT NULL DEFAULT 0,      -- nothing but tests goes to it before: it failed
	paused_ms INTEGER NOT NULL DEFAULT 0,
	paused_why TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, hook_id)
) STRICT;

-- An event for a hook, written in the transaction of what happened; stays as the log of deliveries.
CREATE TABLE outbox (
	delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,
	project_id TEXT NOT NULL,
	hook_id TEXT NOT NULL,         -- 'mail': the addresses of the digest
	event_id TEXT NOT NULL,
	event INTEGER NOT NULL,        -- server/hook.h
	facts TEXT NOT NULL,           -- JSON object
	body TEXT NOT NULL DEFAULT '', -- as it was sent last
	created_ms INTEGER NOT NULL,
	due_ms INTEGER NOT NULL,
	until_ms INTEGER NOT NULL,     -- given up then
	tries INTEGER NOT NULL DEFAULT 0,
	tries_left INTEGER NOT NULL,
	state INTEGER NOT NULL DEFAULT 0 -- 0 waits, 1 delivered, 2 given up
) STRICT;
CREATE UNIQUE INDEX outbox_once ON outbox(project_id, hook_id, event_id);
CREATE INDEX outbox_by_hook ON outbox(project_id, hook_id, delivery_id);
CREATE INDEX outbox_waiting ON outbox(project_id, hook_id, due_ms) WHERE state = 0;
CREATE INDEX outbox_tests ON outbox(project_id, hook_id) WHERE state = 0 AND event = 6;
CREATE INDEX outbox_until ON outbox(until_ms) WHERE state = 0;
CREATE INDEX outbox_by_age ON outbox(created_ms) WHERE state <> 0;
CREATE INDEX outbox_anrs ON outbox(project_id, created_ms) WHERE event = 4;

CREATE TABLE outbox_try (
	delivery_id INTEGER NOT NULL,
	n INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	took_ms INTEGER NOT NULL,
	http INTEGER NOT NULL,         -- 0: there was no answer
	error TEXT NOT NULL,           -- in words; '': it came through
	PRIMARY KEY (delivery_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE regression_history (
	project_id TEXT NOT NULL,
	regression_id TEXT NOT NULL,
	n INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	author TEXT NOT NULL,          -- 'tracewell': the server by itself
	event INTEGER NOT NULL,        -- server/hook.h
	status INTEGER NOT NULL,       -- from then on
	version TEXT NOT NULL,         -- it was fixed in
	PRIMARY KEY (project_id, regression_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX regression_history_by_time ON regression_history(project_id, at_ms);

-- Why apps did not respond (ANR groups), and which locks threads waited for: one row in hang for each
-- trace that tells either.  They stay when the trace goes, as rollups do.
ALTER TABLE trace ADD COLUMN hung INTEGER NOT NULL DEFAULT 0;    -- 1: looked at, 2: could not be read
ALTER TABLE trace ADD COLUMN install INTEGER NOT NULL DEFAULT 0; -- hash of who sent it, 0 not said
CREATE INDEX trace_unhung ON trace(project_id, trace_id) WHERE state = 2 AND hung = 0;

CREATE TABLE hang (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	day INTEGER NOT NULL,          -- since 1970, UTC, when the server took the trace
	app TEXT NOT NULL, version_name TEXT NOT NULL, build_id TEXT NOT NULL, mapping_id TEXT NOT NULL,
	scenario TEXT NOT NULL,
	device TEXT NOT NULL, device_class TEXT NOT NULL, os TEXT NOT NULL,
	labels TEXT NOT NULL,          -- a JSON object, '{}' none
	who INTEGER NOT NULL,          -- hash of a user or an installation, 0 not said
	anr INTEGER NOT NULL,          -- 1: has a row in anr
	keyed INTEGER NOT NULL DEFAULT 0, -- number of the rules by which its ANR has its key; 0: to be named
	PRIMARY KEY (project_id, trace_id)
) STRICT;
CREATE INDEX hang_by_day ON hang(project_id, day);
CREATE INDEX hang_anr_by_day ON hang(project_id, day) WHERE anr = 1;
CREATE INDEX hang_by_age ON hang(day);
CREATE INDEX hang_by_build ON hang(project_id, build_id, trace_id);
CREATE INDEX hang_by_mapping ON hang(project_id, mapping_id, trace_id) WHERE mapping_id <> '';
CREATE INDEX hang_keyed ON hang(project_id, keyed, trace_id) WHERE anr = 1;
CREATE INDEX hang_unnamed ON hang(project_id, trace_id) WHERE keyed = 0;

CREATE TABLE anr (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	brief BLOB NOT NULL,           -- what of the report the cause is found by, in the names of the trace
	base TEXT NOT NULL, key TEXT NOT NULL, -- of its group: before rules merge, and then; '' not known yet
	kind TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL, verdict TEXT NOT NULL,
	detail TEXT NOT NULL,          -- JSON: frames, locks
	PRIMARY KEY (project_id, trace_id)
) STRICT;
CREATE INDEX anr_by_key ON anr(project_id, key, trace_id);

CREATE TABLE lock_wait ( -- a lock that threads of a trace waited for; times are nanoseconds
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	dump INTEGER NOT NULL,         -- 1: a report of threads said so, 0: calls did
	is_main INTEGER NOT NULL,      -- it was the main thread that waited
	raw_monitor TEXT NOT NULL, raw_owner TEXT NOT NULL, -- as the trace calls them
	source TEXT NOT NULL,          -- of raw_owner: file and line
	monitor TEXT NOT NULL, owner TEXT NOT NULL, -- class, and the method that took it, '' not known
	holder TEXT NOT NULL,          -- name of the thread that had it
	waits INTEGER NOT NULL, timed INTEGER NOT NULL, -- and of how many the length is known
	total_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL,
	PRIMARY KEY (project_id, trace_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE hang_rename ( -- builds whose mapping came: their traces behind after_id are to be named again
	project_id TEXT NOT NULL,
	build_id TEXT NOT NULL,
	after_id TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, build_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE anr_rules ( -- all versions of a project's rules, the last one holds
	project_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	value TEXT NOT NULL,           -- server/anr_rules.h
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, version)
) STRICT, WITHOUT ROWID;

-- Schema 7: what a fleet engine outside the catalogue, such as ClickHouse, must still do.

-- The engine that stores sums over traces.  No row: this catalogue.
CREATE TABLE fleet_engine (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Deleted traces whose rows it must erase.
CREATE TABLE fleet_erase (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	day INTEGER NOT NULL,              -- that it counts on
	hidden INTEGER NOT NULL DEFAULT 0, -- 1: no longer counted, but its rows are still stored
	PRIMARY KEY (project_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX fleet_erase_hidden ON fleet_erase(hidden, trace_id);

-- 1: the engine has the row as it is keyed now.
ALTER TABLE hang ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;
CREATE INDEX hang_uncopied ON hang(project_id, trace_id) WHERE copied = 0 AND keyed <> 0;

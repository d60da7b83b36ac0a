-- Schema 7, as schema/catalogue/0007_fleet_engine.sql, which documents its tables.

CREATE TABLE fleet_engine (name TEXT COLLATE "C" PRIMARY KEY);

CREATE TABLE fleet_erase (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	hidden BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id)
);
CREATE INDEX fleet_erase_hidden ON fleet_erase(hidden, trace_id);

ALTER TABLE hang ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;
CREATE INDEX hang_uncopied ON hang(project_id, trace_id) WHERE copied = 0 AND keyed <> 0;

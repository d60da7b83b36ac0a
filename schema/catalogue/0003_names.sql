-- How much of its traces the mappings of a build name.  Counted in the background: of each ready trace
-- once, and again when a mapping came; a build's row holds the sums.
ALTER TABLE trace ADD COLUMN named INTEGER NOT NULL DEFAULT 0; -- 0 not counted, 1 counted, 2 counted by an older mapping
ALTER TABLE trace ADD COLUMN names_ids INTEGER NOT NULL DEFAULT 0;             -- method ids of the trace
ALTER TABLE trace ADD COLUMN names_resolved INTEGER NOT NULL DEFAULT 0;        -- those that a mapping names
ALTER TABLE trace ADD COLUMN names_slices INTEGER NOT NULL DEFAULT 0;          -- slices of methods with ids
ALTER TABLE trace ADD COLUMN names_resolved_slices INTEGER NOT NULL DEFAULT 0;
CREATE INDEX trace_uncounted ON trace(project_id, trace_id) WHERE state = 2 AND named <> 1 AND build_id <> '';
CREATE INDEX trace_by_mapping ON trace(project_id, mapping_id) WHERE mapping_id <> '';

ALTER TABLE build ADD COLUMN names_traces INTEGER NOT NULL DEFAULT 0;  -- counted ones
ALTER TABLE build ADD COLUMN names_lacking INTEGER NOT NULL DEFAULT 0; -- with an id that no mapping names
ALTER TABLE build ADD COLUMN names_ids INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN names_resolved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN names_slices INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN names_resolved_slices INTEGER NOT NULL DEFAULT 0;

CREATE TABLE recount ( -- builds whose mapping came: their traces behind after_id are to be counted again
	project_id TEXT NOT NULL,
	build_id TEXT NOT NULL,
	after_id TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, build_id)
) STRICT, WITHOUT ROWID;

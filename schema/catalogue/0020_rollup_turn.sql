-- Rollups that hold nobody up: what fails is put off, longer each time; projects take turns; names that no cell
-- uses go; and a mapping that comes while names are given by another is noticed.
ALTER TABLE rollup_cell ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;    -- that failed, one after the other
ALTER TABLE rollup_cell ADD COLUMN again_ms INTEGER NOT NULL DEFAULT 0; -- it is not added up before
DROP INDEX rollup_cell_pending;
CREATE INDEX rollup_cell_pending ON rollup_cell(project_id, pending DESC) WHERE pending > 0;

ALTER TABLE rollup_method ADD COLUMN seen_day INTEGER NOT NULL DEFAULT 0; -- no cell of a later day uses it
UPDATE rollup_method SET seen_day = unixepoch() / 86400;
CREATE INDEX rollup_method_by_age ON rollup_method(seen_day);

ALTER TABLE rollup_rename ADD COLUMN generation INTEGER NOT NULL DEFAULT 0; -- another with each mapping

DROP INDEX trace_unfolded;
CREATE INDEX trace_unfolded ON trace(project_id, created_ms, trace_id) WHERE state = 2 AND folded = 0;
CREATE TABLE rollup_again ( -- traces that could not be read just now (folded = 3), or are tried again (0)
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	tries INTEGER NOT NULL,
	again_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_again_by_time ON rollup_again(again_ms);

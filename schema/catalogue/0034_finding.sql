-- What detectors found in traces: one row for each trace that was looked at and cell of rollups it is counted in
-- (bytes: server/found.c), taken out with the trace.
ALTER TABLE trace ADD COLUMN detected INTEGER NOT NULL DEFAULT 0; -- number of the rules that looked; 0: none, -1: unreadable, -2: put off
ALTER TABLE trace ADD COLUMN detect_ms INTEGER NOT NULL DEFAULT 0; -- put off until then
CREATE INDEX trace_detected ON trace(project_id, detected, trace_id) WHERE state = 2 AND folded = 1; -- others are in no cell

CREATE TABLE finding (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,      -- as in rollup_cell
	trace_id TEXT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX finding_by_trace ON finding(project_id, trace_id);

-- What many traces say together: rollups.  A trace adds one row to rollup_delta for each cell that it is
-- counted in, in the transaction that marks it; now and then the deltas of a cell are added into its parts,
-- in the transaction that deletes them.  Bytes are laid out in server/rollup*.c.  Cells and methods are
-- numbered by hashes of what they are.
ALTER TABLE trace ADD COLUMN folded INTEGER NOT NULL DEFAULT 0; -- 1: counted in rollups, 2: could not be read
CREATE INDEX trace_unfolded ON trace(project_id, trace_id) WHERE state = 2 AND folded = 0;

CREATE TABLE rollup_cell ( -- a day and the dimensions that people ask for
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	day INTEGER NOT NULL,          -- since 1970, UTC, when the server took the trace
	app TEXT NOT NULL, version_name TEXT NOT NULL, build_id TEXT NOT NULL, mapping_id TEXT NOT NULL,
	scenario TEXT NOT NULL,
	device_class TEXT NOT NULL, os TEXT NOT NULL, -- '' in cells of a label
	label TEXT NOT NULL,           -- key=value of an indexed label; '' in the cell that every trace has
	traces INTEGER NOT NULL,
	pending INTEGER NOT NULL,      -- of them in rollup_delta
	version INTEGER NOT NULL DEFAULT 0, -- rises when deltas are added into the parts
	head BLOB NOT NULL,            -- lengths of traces, and which had them
	PRIMARY KEY (project_id, cell_id)
) STRICT;
CREATE INDEX rollup_cell_by_day ON rollup_cell(project_id, label, day);
CREATE INDEX rollup_cell_pending ON rollup_cell(pending) WHERE pending > 0;
CREATE INDEX rollup_cell_by_age ON rollup_cell(day);

CREATE TABLE rollup_part ( -- of a cell: one metric of all its methods
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	metric INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, metric)
) STRICT;

CREATE TABLE rollup_delta ( -- of a trace that is not yet in the parts
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	trace_id TEXT NOT NULL,
	duration_ns INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT;

CREATE TABLE rollup_method ( -- what the numbers of methods stand for; a mapping that comes late changes the name
	project_id TEXT NOT NULL,
	method_id INTEGER NOT NULL,
	build_id TEXT NOT NULL, mapping_id TEXT NOT NULL, -- of the traces that number it so
	raw TEXT NOT NULL,       -- what the trace calls it: #id, or its name there
	name TEXT NOT NULL,
	descriptor TEXT NOT NULL, -- tells apart what has one name, '' when it is not known
	named INTEGER NOT NULL,  -- 0: an id that no mapping names
	PRIMARY KEY (project_id, method_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_method_by_name ON rollup_method(project_id, name, method_id);
CREATE INDEX rollup_method_by_build ON rollup_method(project_id, build_id, method_id);
CREATE INDEX rollup_method_by_mapping ON rollup_method(project_id, mapping_id, method_id) WHERE mapping_id <> '';

CREATE TABLE rollup_rename ( -- builds whose mapping came: their methods behind after_id are to be named again
	project_id TEXT NOT NULL,
	build_id TEXT NOT NULL,
	after_id INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, build_id)
) STRICT, WITHOUT ROWID;

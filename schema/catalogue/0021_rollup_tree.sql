-- Call trees of many traces, by the cells of rollups: a trace adds a row to rollup_tree_delta for each cell that it
-- is counted in, in the transaction that counts it; now and then the deltas of a cell are added into its tree, in the
-- transaction that deletes them.  Bytes are laid out in server/rollup_tree_bytes.c.
CREATE TABLE rollup_tree (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	day INTEGER NOT NULL,               -- of the cell
	pending INTEGER NOT NULL,           -- rows of it in rollup_tree_delta
	version INTEGER NOT NULL DEFAULT 0, -- rises when deltas are added into data
	data BLOB NOT NULL,                 -- empty before the first time
	levels BLOB NOT NULL,               -- needed to add deltas, and not to answer; behind data, so that it is not even read
	PRIMARY KEY (project_id, cell_id)
) STRICT;
CREATE INDEX rollup_tree_pending ON rollup_tree(pending) WHERE pending > 0;

CREATE TABLE rollup_tree_delta ( -- of a trace that is not yet in its cell's tree
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	trace_id TEXT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT;

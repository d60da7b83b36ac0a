-- A cell's tree that its deltas could not be added into: it is tried again later, each time later, so that it keeps no
-- other from its turn.  Apart from rollup_tree, whose rows are large.
CREATE TABLE rollup_tree_later (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	again_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, cell_id)
) STRICT, WITHOUT ROWID;

-- What is large in a cell's merged call trees, alone: what a question of many cells reads.  Made with rollup_tree.data,
-- in the same transaction; apart from it, so that nothing large lies before it.
CREATE TABLE rollup_tree_rough (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	data BLOB NOT NULL, -- as rollup_tree.data; empty: it is still to be made
	PRIMARY KEY (project_id, cell_id)
) STRICT;
INSERT INTO rollup_tree_rough(project_id, cell_id, data) SELECT project_id, cell_id, x'' FROM rollup_tree WHERE version > 0;
CREATE INDEX rollup_tree_unrough ON rollup_tree_rough(data, project_id, cell_id) WHERE data = x'';

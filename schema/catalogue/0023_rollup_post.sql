-- In which traces, on which thread and how long at most: postings of methods, for searches of the fleet.  Each
-- trace leaves a row in slot 17 of its cells; when a cell is added up, these are packed: slot 16 tells the traces
-- and threads of a pack, slots 0 to 15 the calls of the methods whose numbers end so.  Laid out in server/post.c.
CREATE TABLE rollup_post (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	slot INTEGER NOT NULL,
	pack INTEGER NOT NULL, -- any number; rows of a pack share it
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, slot, pack)
) STRICT;

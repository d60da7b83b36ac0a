-- What people say of traces: a title, a pin, tags, annotations; and lists of traces they keep.
ALTER TABLE trace ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE trace ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;      -- 1: kept when others expire
ALTER TABLE trace ADD COLUMN annotations INTEGER NOT NULL DEFAULT 0; -- rows of annotation

CREATE TABLE trace_tag (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	tag TEXT NOT NULL,
	PRIMARY KEY (project_id, trace_id, tag),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX trace_by_tag ON trace_tag(project_id, tag, trace_id);

CREATE TABLE annotation ( -- at a time, on a method, or both
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	annotation_id TEXT NOT NULL,
	author TEXT NOT NULL,
	text TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	edited_ms INTEGER NOT NULL DEFAULT 0,
	ts_ns INTEGER NOT NULL,        -- -1: at no time
	dur_ns INTEGER NOT NULL,
	tid INTEGER NOT NULL,          -- -1: of no thread
	method_index INTEGER NOT NULL, -- -1: on no method; else where it was found last
	method_key TEXT NOT NULL,      -- what finds it after the trace was decoded again: #id, or its name in the trace
	PRIMARY KEY (project_id, trace_id, annotation_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE saved_filter (
	project_id TEXT NOT NULL REFERENCES project ON DELETE CASCADE,
	name TEXT NOT NULL,
	query TEXT NOT NULL, -- as in the address of the list
	author TEXT NOT NULL,
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, name)
) STRICT, WITHOUT ROWID;

-- What a project's people chose: one JSON text a key.
CREATE TABLE project_setting (
	project_id TEXT NOT NULL REFERENCES project(project_id) ON DELETE CASCADE,
	key TEXT NOT NULL,        -- 'frames': which methods are the app's own
	value TEXT NOT NULL,      -- JSON
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, key)
) WITHOUT ROWID;

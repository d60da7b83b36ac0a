-- What people decided about groups of ANRs.
CREATE TABLE anr_state (
	project_id TEXT NOT NULL,
	key TEXT NOT NULL,                    -- of the group, as in anr
	status INTEGER NOT NULL,              -- as in regression; 3 is computed from reports after fixed_ms
	fixed_in TEXT NOT NULL DEFAULT '',    -- a version
	fixed_ms INTEGER NOT NULL DEFAULT 0,  -- when it was set to fixed
	owner TEXT NOT NULL DEFAULT '',
	note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	author TEXT NOT NULL,                 -- of the last change
	changed_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, key)
) STRICT, WITHOUT ROWID;

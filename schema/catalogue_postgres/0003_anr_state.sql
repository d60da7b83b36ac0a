-- What people decided about groups of ANRs.
CREATE TABLE anr_state (
	project_id TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,                    -- of the group, as in anr
	status BIGINT NOT NULL,              -- as in regression; 3 is computed from reports after fixed_ms
	fixed_in TEXT COLLATE "C" NOT NULL DEFAULT '',    -- a version
	fixed_ms BIGINT NOT NULL DEFAULT 0,  -- when it was set to fixed
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	note TEXT COLLATE "C" NOT NULL DEFAULT '',
	muted_until_ms BIGINT NOT NULL DEFAULT 0,
	author TEXT COLLATE "C" NOT NULL,                 -- of the last change
	changed_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, key)
);

-- Periods whose digest was made: the row claims it, so that each is told once, across restarts.
CREATE TABLE digest_made (
	project_id TEXT NOT NULL,
	until_ms INTEGER NOT NULL,     -- the period's end
	since_ms INTEGER NOT NULL,
	made_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, until_ms)
) STRICT, WITHOUT ROWID;

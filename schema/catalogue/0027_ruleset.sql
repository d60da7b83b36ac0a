-- Rules of a project that keep their versions: of groups of ANRs, as before, and of detectors.
CREATE TABLE ruleset ( -- the last version of each kind holds
	project_id TEXT NOT NULL,
	kind TEXT NOT NULL,            -- 'anr_rules': server/anr_rules.h, 'detectors': server/detect_rules.h
	version INTEGER NOT NULL,
	value TEXT NOT NULL,
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, kind, version)
) STRICT, WITHOUT ROWID;
INSERT INTO ruleset(project_id, kind, version, value, author, created_ms)
	SELECT project_id, 'anr_rules', version, value, author, created_ms FROM anr_rules;
DROP TABLE anr_rules;

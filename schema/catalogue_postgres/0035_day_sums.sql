-- What schema/catalogue brings by 0032_day_sums, 0033_commit, 0034_finding and 0035_regression_new: what tables and
-- columns mean is said there.

ALTER TABLE hang ADD COLUMN tallied BIGINT NOT NULL DEFAULT 0;
CREATE INDEX hang_tallied ON hang(project_id, day, tallied);

CREATE TABLE hang_day (
	project_id TEXT COLLATE "C" NOT NULL, day BIGINT NOT NULL, generation BIGINT NOT NULL DEFAULT 1,
	waiting BIGINT NOT NULL DEFAULT 1, PRIMARY KEY (project_id, day)
);
CREATE INDEX hang_day_waiting ON hang_day(project_id, day) WHERE waiting = 1;
CREATE INDEX hang_day_by_age ON hang_day(day);
INSERT INTO hang_day(project_id, day) SELECT DISTINCT project_id, day FROM hang;

-- A row of an index has 2.7 KB, and names of methods may be longer: the key is a hash of the texts.  decode is there
-- because what makes bytes of a text otherwise depends on the server's settings, and may not be kept.
CREATE TABLE hang_tally (
	project_id TEXT COLLATE "C" NOT NULL, what BIGINT NOT NULL, fine BIGINT NOT NULL, day BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL, app TEXT COLLATE "C" NOT NULL, version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL, scenario TEXT COLLATE "C" NOT NULL,
	device_class TEXT COLLATE "C" NOT NULL, os TEXT COLLATE "C" NOT NULL, generation BIGINT NOT NULL,
	data BYTEA NOT NULL,
	name_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(name, '\', '\\'), 'escape'))) STORED,
	dims_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(app || chr(31) || version_name || chr(31)
		|| build_id || chr(31) || scenario || chr(31) || device_class || chr(31) || os, '\', '\\'), 'escape'))) STORED,
	PRIMARY KEY (project_id, what, fine, day, name_hash, dims_hash)
);

CREATE TABLE rollup_wide (
	project_id TEXT COLLATE "C" NOT NULL, day BIGINT NOT NULL, app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL, build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL, due BIGINT NOT NULL DEFAULT 1, sign BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id)
);
CREATE INDEX rollup_wide_due ON rollup_wide(day) WHERE due > 0;
CREATE INDEX rollup_cell_by_wide ON rollup_cell(project_id, day, app, version_name, build_id, mapping_id) WHERE label = '';
INSERT INTO rollup_wide(project_id, day, app, version_name, build_id, mapping_id) SELECT DISTINCT project_id, day, app,
	version_name, build_id, mapping_id FROM rollup_cell WHERE label = '';

CREATE TABLE rollup_wide_part (
	project_id TEXT COLLATE "C" NOT NULL, day BIGINT NOT NULL, app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL, build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL, metric BIGINT NOT NULL, data BYTEA NOT NULL,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id, metric)
);

ALTER TABLE build ADD COLUMN commit_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE build ADD COLUMN commit_set BIGINT NOT NULL DEFAULT 0;
CREATE INDEX build_with_commit ON build(project_id, version_name, commit_id) WHERE commit_set = 1;

ALTER TABLE trace ADD COLUMN detected BIGINT NOT NULL DEFAULT 0;
ALTER TABLE trace ADD COLUMN detect_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX trace_detected ON trace(project_id, detected, trace_id) WHERE state = 2 AND folded = 1;

CREATE TABLE finding (
	project_id TEXT COLLATE "C" NOT NULL, cell_id BIGINT NOT NULL, trace_id TEXT COLLATE "C" NOT NULL,
	data BYTEA NOT NULL, PRIMARY KEY (project_id, cell_id, trace_id)
);
CREATE INDEX finding_by_trace ON finding(project_id, trace_id);

ALTER TABLE regression ADD COLUMN kind BIGINT NOT NULL DEFAULT 0;
ALTER TABLE regression ADD COLUMN share_ppm BIGINT NOT NULL DEFAULT 0;

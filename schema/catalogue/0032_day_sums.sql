-- Sums of ANR groups and of locks by day, so that a list of them reads rows by group and not by report.  What a day's
-- sums count says hang.tallied: it is the day's generation; rows of hang that are not in them yet are read beside
-- them.  What changes a row that is counted raises the generation, which takes all of the day's sums out of use, and
-- they are made anew in the background.  Bytes are laid out in server/hang_tally.c.
ALTER TABLE hang ADD COLUMN tallied INTEGER NOT NULL DEFAULT 0;
CREATE INDEX hang_tallied ON hang(project_id, day, tallied);

CREATE TABLE hang_day ( -- each day that hang has rows of
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	generation INTEGER NOT NULL DEFAULT 1,
	waiting INTEGER NOT NULL DEFAULT 1, -- 1: not all of its rows are counted
	PRIMARY KEY (project_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX hang_day_waiting ON hang_day(project_id, day) WHERE waiting = 1;
CREATE INDEX hang_day_by_age ON hang_day(day);
INSERT INTO hang_day(project_id, day) SELECT DISTINCT project_id, day FROM hang;

CREATE TABLE hang_tally (
	project_id TEXT NOT NULL,
	what INTEGER NOT NULL,         -- 0: ANRs, 1: locks
	fine INTEGER NOT NULL,         -- 1: by all of what follows the name, 0: whatever that is
	day INTEGER NOT NULL,
	name TEXT NOT NULL,            -- key of the group or name of the lock; '' all of them
	app TEXT NOT NULL, version_name TEXT NOT NULL, build_id TEXT NOT NULL, scenario TEXT NOT NULL,
	device_class TEXT NOT NULL, os TEXT NOT NULL,
	generation INTEGER NOT NULL,   -- of the day when it was made
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, what, fine, day, name, app, version_name, build_id, scenario, device_class, os)
) STRICT, WITHOUT ROWID;

-- Parts of all cells of a day that differ only by scenario, class of devices and system, added up once the day is
-- over: a question that asks for none of these reads one row in place of dozens.  It is good as long as its sign is
-- that of the cells and their versions.
CREATE TABLE rollup_wide (
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	app TEXT NOT NULL, version_name TEXT NOT NULL, build_id TEXT NOT NULL, mapping_id TEXT NOT NULL,
	due INTEGER NOT NULL DEFAULT 1, -- how often cells of it changed since it was made
	sign INTEGER NOT NULL DEFAULT 0, -- 0: there are no parts
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_wide_due ON rollup_wide(day) WHERE due > 0;
CREATE INDEX rollup_cell_by_wide ON rollup_cell(project_id, day, app, version_name, build_id, mapping_id) WHERE label = '';
INSERT INTO rollup_wide(project_id, day, app, version_name, build_id, mapping_id) SELECT DISTINCT project_id, day, app,
	version_name, build_id, mapping_id FROM rollup_cell WHERE label = '';

CREATE TABLE rollup_wide_part ( -- as rollup_part
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	app TEXT NOT NULL, version_name TEXT NOT NULL, build_id TEXT NOT NULL, mapping_id TEXT NOT NULL,
	metric INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id, metric)
) STRICT;

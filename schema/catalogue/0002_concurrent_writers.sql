-- Schema 2: what writers that run beside each other need.

-- Changes of counters that every upload or deletion changes, until they are added to the counter's
-- row (catalogue_shared.c).  Readers add them to the row's number.  SQLite, which has one writer,
-- changes the row itself.
CREATE TABLE count_delta (
	project_id TEXT NOT NULL,
	counter INTEGER NOT NULL, -- 0 build.traces, 1 capture_day
	name TEXT NOT NULL,       -- build id, or capture rule
	day INTEGER NOT NULL,     -- of capture_day, or 0
	trace_id TEXT NOT NULL,
	traces INTEGER NOT NULL,  -- 1; -1 for a deleted trace
	devices INTEGER NOT NULL, -- of capture_day: 1 for a device's first upload of the day
	PRIMARY KEY (project_id, counter, name, day, trace_id, traces)
) STRICT, WITHOUT ROWID;

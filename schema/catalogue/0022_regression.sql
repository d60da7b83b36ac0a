-- What got slower, as it was found in rollups, and what people make of it.
CREATE TABLE regression (
	project_id TEXT NOT NULL,
	regression_id TEXT NOT NULL,
	app TEXT NOT NULL, scenario TEXT NOT NULL,
	method TEXT NOT NULL, descriptor TEXT NOT NULL, -- '': the scenario's length
	base TEXT NOT NULL, head TEXT NOT NULL, -- versions; '': from a day on
	day INTEGER NOT NULL,           -- the first one after the change, since 1970, UTC
	percent INTEGER NOT NULL,       -- the quantile
	before_ns INTEGER NOT NULL, after_ns INTEGER NOT NULL,
	change_ppm INTEGER NOT NULL, low_ppm INTEGER NOT NULL, high_ppm INTEGER NOT NULL, -- 100000: a tenth; where 95 of 100 such are
	score_milli INTEGER NOT NULL,   -- thousandths of a standard error
	n_before INTEGER NOT NULL, n_after INTEGER NOT NULL, -- traces
	before_trace TEXT NOT NULL, after_trace TEXT NOT NULL,
	status INTEGER NOT NULL,        -- 0 open, 1 acknowledged, 2 fixed, 3 came back
	fixed_in TEXT NOT NULL DEFAULT '', -- a version
	fixed_day INTEGER NOT NULL DEFAULT 0,
	earlier TEXT NOT NULL DEFAULT '', -- the regression that was fixed, of one that came back
	owner TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, -- found
	PRIMARY KEY (project_id, regression_id)
) STRICT;
CREATE INDEX regression_by_series ON regression(project_id, app, scenario, method);

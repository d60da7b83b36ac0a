-- Uploads on which a decoder died: kept, with why, until an admin looks or retention drops them.
CREATE TABLE quarantine (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	reason TEXT NOT NULL,      -- crash, loop, memory, forbidden, no_answer
	signal INTEGER NOT NULL,   -- that ended it last, 0 none
	format TEXT NOT NULL,      -- as far as it was recognised, ''
	decoder_version INTEGER NOT NULL,
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	deaths INTEGER NOT NULL,   -- decoders that it cost
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX quarantine_by_age ON quarantine(project_id, first_ms, trace_id);

-- Who changed what.  Entries are only added, in the transaction of the change, and expire by age;
-- numbers rise and are never used twice, so that a missing one shows.
CREATE TABLE audit (
	entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
	at_ms INTEGER NOT NULL,
	project_id TEXT NOT NULL,  -- '': of the server
	by_kind TEXT NOT NULL,     -- user, key, link, cli, server
	by_id TEXT NOT NULL,       -- of the user or key
	by_name TEXT NOT NULL,     -- as it was called then
	address TEXT NOT NULL,     -- it came from, '': not over the network
	request_id TEXT NOT NULL,  -- as in the log
	action TEXT NOT NULL,      -- key.create
	target TEXT NOT NULL,      -- id or name of what was changed
	facts TEXT NOT NULL        -- JSON object of texts
) STRICT;
CREATE INDEX audit_by_project ON audit(project_id, entry_id);
CREATE INDEX audit_by_age ON audit(at_ms);

-- Schema 10: objects of a store that are to be deleted, as no row refers to them.  A row is added by the transaction
-- that deletes the last reference, and removed when the object is.  Files in a data folder have none.

CREATE TABLE file_drop (
	key TEXT PRIMARY KEY,      -- below the prefix of the store
	due_ms INTEGER NOT NULL,   -- of the next attempt, also while a server makes one
	tries INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_drop_due ON file_drop(due_ms);

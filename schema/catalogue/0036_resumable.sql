-- Uploads in pieces that any of several servers may go on with.  A server that is alone keeps them in data/uploads.
CREATE TABLE resumable (
	project_id TEXT NOT NULL, resumable_id TEXT NOT NULL,
	key_id TEXT NOT NULL,                    -- whose limits it counts in
	idempotency_key TEXT NOT NULL,           -- never ''
	metadata TEXT NOT NULL,                  -- Upload-Metadata, as it was sent
	bytes INTEGER NOT NULL,                  -- when it is whole
	arrived INTEGER NOT NULL DEFAULT 0,      -- Upload-Offset: durable in the storage
	pieces INTEGER NOT NULL DEFAULT 0,       -- rows of resumable_piece
	state INTEGER NOT NULL DEFAULT 0,        -- 0 open, 1 a trace, 2 its pieces are to be deleted, then it
	trace_id TEXT NOT NULL DEFAULT '',       -- that it became
	expires_ms INTEGER NOT NULL,
	owner TEXT NOT NULL DEFAULT '',          -- who writes it now; another each time
	until_ms INTEGER NOT NULL DEFAULT 0,     -- and then another may
	PRIMARY KEY (project_id, resumable_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX resumable_open ON resumable(project_id, key_id) WHERE state = 0;
CREATE INDEX resumable_by_end ON resumable(expires_ms);
CREATE INDEX resumable_to_clean ON resumable(until_ms) WHERE state > 0 AND (state = 2 OR pieces > 0);

CREATE TABLE resumable_piece (
	project_id TEXT NOT NULL, resumable_id TEXT NOT NULL,
	start INTEGER NOT NULL,                  -- in the upload
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL,
	object TEXT NOT NULL,                    -- its key in the storage
	PRIMARY KEY (project_id, resumable_id, start)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX resumable_piece_by_object ON resumable_piece(object);

-- Sign-ins by a provider that were ended, so that none is ended at another server again.
CREATE TABLE signin_used (mark TEXT NOT NULL PRIMARY KEY, until_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX signin_used_by_end ON signin_used(until_ms);

-- Tries of passwords and of sign-ins: a bucket each, by the hash of whom they are of, until it is empty.
CREATE TABLE signin_try (what INTEGER NOT NULL PRIMARY KEY, empty_ms INTEGER NOT NULL) STRICT;
CREATE INDEX signin_try_by_end ON signin_try(empty_ms);

-- What schema/catalogue brings by 0036_resumable: what tables and columns mean is said there.
CREATE TABLE resumable (
	project_id TEXT COLLATE "C" NOT NULL, resumable_id TEXT COLLATE "C" NOT NULL,
	key_id TEXT COLLATE "C" NOT NULL,
	idempotency_key TEXT COLLATE "C" NOT NULL,
	metadata TEXT COLLATE "C" NOT NULL,
	bytes BIGINT NOT NULL,
	arrived BIGINT NOT NULL DEFAULT 0,
	pieces BIGINT NOT NULL DEFAULT 0,
	state BIGINT NOT NULL DEFAULT 0,
	trace_id TEXT COLLATE "C" NOT NULL DEFAULT '',
	expires_ms BIGINT NOT NULL,
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	until_ms BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, resumable_id)
);
CREATE INDEX resumable_open ON resumable(project_id, key_id) WHERE state = 0;
CREATE INDEX resumable_by_end ON resumable(expires_ms);
CREATE INDEX resumable_to_clean ON resumable(until_ms) WHERE state > 0 AND (state = 2 OR pieces > 0);

CREATE TABLE resumable_piece (
	project_id TEXT COLLATE "C" NOT NULL, resumable_id TEXT COLLATE "C" NOT NULL,
	start BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	sha256 TEXT COLLATE "C" NOT NULL,
	object TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, resumable_id, start)
);
CREATE UNIQUE INDEX resumable_piece_by_object ON resumable_piece(object);

CREATE TABLE signin_used (mark TEXT COLLATE "C" NOT NULL PRIMARY KEY, until_ms BIGINT NOT NULL);
CREATE INDEX signin_used_by_end ON signin_used(until_ms);

CREATE TABLE signin_try (what BIGINT NOT NULL PRIMARY KEY, empty_ms BIGINT NOT NULL);
CREATE INDEX signin_try_by_end ON signin_try(empty_ms);

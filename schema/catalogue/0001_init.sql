-- The catalogue (user_version 1).  Every key starts with project_id; ids are ULIDs; times are Unix
-- milliseconds, 0 for never.  Applied once, never edited after a release: changes are new files.

CREATE TABLE project (
	project_id TEXT PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE api_key ( -- secrets are kept as SHA-256 only
	project_id TEXT NOT NULL REFERENCES project,
	key_id TEXT NOT NULL,
	name TEXT NOT NULL,
	scope INTEGER NOT NULL,
	hash BLOB NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL,
	last_seen_ms INTEGER NOT NULL DEFAULT 0,
	revoked_ms INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE signin_link ( -- of the whole server; used once, then gone
	hash BLOB PRIMARY KEY,
	expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
	hash BLOB PRIMARY KEY,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE build (
	project_id TEXT NOT NULL REFERENCES project,
	build_id TEXT NOT NULL,
	map_sha256 TEXT NOT NULL DEFAULT '',    -- compiled image; '' while no mapping was sent
	source_sha256 TEXT NOT NULL DEFAULT '', -- the text as it was sent
	map_version TEXT NOT NULL DEFAULT '',
	entries INTEGER NOT NULL DEFAULT 0,
	malformed INTEGER NOT NULL DEFAULT 0,
	duplicates INTEGER NOT NULL DEFAULT 0,
	created_ms INTEGER NOT NULL,            -- first heard of
	updated_ms INTEGER NOT NULL DEFAULT 0,  -- mapping
	traces INTEGER NOT NULL DEFAULT 0,      -- that name this build
	app TEXT NOT NULL DEFAULT '',           -- of its latest trace
	version_name TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, build_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_by_age ON build(project_id, created_ms, build_id);
CREATE INDEX build_by_map ON build(map_sha256) WHERE map_sha256 <> '';
CREATE INDEX build_by_source ON build(source_sha256) WHERE source_sha256 <> '';

CREATE TABLE trace (
	project_id TEXT NOT NULL REFERENCES project,
	trace_id TEXT NOT NULL,
	key_id TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	content TEXT NOT NULL,      -- part=sha256 of each part: what makes two uploads the same
	state INTEGER NOT NULL,     -- 0 queued, 1 decoding, 2 ready, 3 failed
	created_ms INTEGER NOT NULL,
	ready_ms INTEGER NOT NULL DEFAULT 0,
	tries INTEGER NOT NULL DEFAULT 0,
	upload_bytes INTEGER NOT NULL,
	-- what the uploader said
	app TEXT NOT NULL, version_name TEXT NOT NULL, version_code TEXT NOT NULL,
	build_id TEXT NOT NULL, mapping_id TEXT NOT NULL, device TEXT NOT NULL, os TEXT NOT NULL,
	abi TEXT NOT NULL, process TEXT NOT NULL, scenario TEXT NOT NULL,
	session_id TEXT NOT NULL, uuid TEXT NOT NULL, labels TEXT NOT NULL,
	pid INTEGER NOT NULL, started_ms INTEGER NOT NULL,
	-- what the decoder found
	format TEXT NOT NULL DEFAULT '', decoder_version INTEGER NOT NULL DEFAULT 0,
	slices INTEGER NOT NULL DEFAULT 0, threads INTEGER NOT NULL DEFAULT 0,
	methods INTEGER NOT NULL DEFAULT 0, max_depth INTEGER NOT NULL DEFAULT 0,
	duration_ns INTEGER NOT NULL DEFAULT 0, input_bytes INTEGER NOT NULL DEFAULT 0,
	decoded_bytes INTEGER NOT NULL DEFAULT 0, file_bytes INTEGER NOT NULL DEFAULT 0,
	losses INTEGER NOT NULL DEFAULT 0, repairs INTEGER NOT NULL DEFAULT 0,
	-- why it failed
	error_status TEXT NOT NULL DEFAULT '', error_message TEXT NOT NULL DEFAULT '',
	error_offset INTEGER NOT NULL DEFAULT -1,
	PRIMARY KEY (project_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX trace_once_by_key ON trace(project_id, idempotency_key)
	WHERE idempotency_key <> '';
CREATE UNIQUE INDEX trace_once_by_content ON trace(project_id, device, uuid, content)
	WHERE idempotency_key = '' AND device <> '' AND uuid <> '';
CREATE INDEX trace_by_created ON trace(project_id, created_ms, trace_id);
CREATE INDEX trace_by_duration ON trace(project_id, duration_ns, trace_id);
CREATE INDEX trace_by_slices ON trace(project_id, slices, trace_id);
CREATE INDEX trace_by_bytes ON trace(project_id, upload_bytes, trace_id);
CREATE INDEX trace_by_build ON trace(project_id, build_id);
CREATE INDEX trace_by_id ON trace(trace_id); -- the start-up sweep knows only the file's name

CREATE TABLE part (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	part TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	format TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	PRIMARY KEY (project_id, trace_id, part),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX part_by_content ON part(sha256);

CREATE TABLE job ( -- one per trace that is not decoded yet
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	claimed INTEGER NOT NULL DEFAULT 0,
	due_ms INTEGER NOT NULL,   -- unclaimed: not before; claimed: end of the lease
	tries INTEGER NOT NULL DEFAULT 0,
	owner TEXT NOT NULL DEFAULT '',
	queued_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX job_by_due ON job(claimed, due_ms);

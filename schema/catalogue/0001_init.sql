-- The catalogue, schema 1.  Keys begin with project_id.  Ids are ULIDs.  Times are Unix milliseconds,
-- 0 for never.  A day counts from 1970 in UTC.  Not edited after a release: a change is a new file,
-- 0002_what.sql.
--
-- SQLite reads this file as it is.  PostgreSQL's schema is derived from it (schema/catalogue.py): lines
-- that end with "-- sqlite" are left out, those that begin with "--postgres" are added.  Its text is
-- ordered by its bytes.  An index entry of PostgreSQL is at most 2.7 KB, so long columns are not
-- indexed there.

-- Tables that only PostgreSQL needs

-- Number of the last migration applied.
--postgres CREATE TABLE catalogue_schema (
--postgres 	version BIGINT NOT NULL
--postgres );

-- One row: the id of this catalogue, stored in its data folder too, and the id of that folder, or ''.
--postgres CREATE TABLE catalogue_identity (
--postgres 	identity TEXT COLLATE "C" NOT NULL,
--postgres 	folder TEXT COLLATE "C" NOT NULL DEFAULT ''
--postgres );
--postgres INSERT INTO catalogue_identity VALUES (gen_random_uuid());

-- Leases for work that one of several servers does for all.
--postgres CREATE TABLE catalogue_lead (
--postgres 	what TEXT COLLATE "C" PRIMARY KEY,
--postgres 	owner TEXT COLLATE "C" NOT NULL,
--postgres 	until_ms BIGINT NOT NULL
--postgres );

-- One row: the last number of the audit log.  A sequence would lose numbers with a rollback.
--postgres CREATE TABLE audit_last (
--postgres 	one BIGINT PRIMARY KEY,
--postgres 	entry_id BIGINT NOT NULL
--postgres );
--postgres INSERT INTO audit_last VALUES (1, 0);

-- Projects, keys and people

-- Every other row belongs to a project, except accounts and sign-ins, which belong to the server.
CREATE TABLE project (
	project_id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	deleted_ms INTEGER NOT NULL DEFAULT 0 -- set: its data is being deleted, and its name is free
) STRICT;
CREATE UNIQUE INDEX project_by_name ON project(name) WHERE deleted_ms = 0;

-- API keys of a project.  Secrets are stored as SHA-256 only.  After a rotation the previous secret
-- remains valid for a time.
CREATE TABLE api_key (
	project_id TEXT NOT NULL REFERENCES project,
	key_id TEXT NOT NULL,
	name TEXT NOT NULL,
	scope INTEGER NOT NULL,
	hash BLOB NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL,
	last_seen_ms INTEGER NOT NULL DEFAULT 0,
	revoked_ms INTEGER NOT NULL DEFAULT 0,
	expires_ms INTEGER NOT NULL DEFAULT 0,   -- 0: does not expire
	seen_from TEXT NOT NULL DEFAULT '',      -- address of the last use
	rotated_ms INTEGER NOT NULL DEFAULT 0,
	old_hash BLOB,                           -- of the previous secret
	old_until_ms INTEGER NOT NULL DEFAULT 0, -- end of its validity
	old_seen_ms INTEGER NOT NULL DEFAULT 0,  -- its last use since the rotation
	PRIMARY KEY (project_id, key_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_key_by_old ON api_key(old_hash) WHERE old_hash IS NOT NULL;

-- Accounts.  They belong to the server; a project grants them a role (member).
CREATE TABLE user (
	user_id TEXT PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,              -- for signing in
	password TEXT NOT NULL DEFAULT '',      -- argon2id with salt and cost; '' none
	is_admin INTEGER NOT NULL DEFAULT 0,    -- of the server
	created_ms INTEGER NOT NULL,
	last_seen_ms INTEGER NOT NULL DEFAULT 0,
	is_disabled INTEGER NOT NULL DEFAULT 0  -- 1: cannot sign in, but keeps account and roles
) STRICT, WITHOUT ROWID;

-- Roles of accounts in projects.
CREATE TABLE member (
	user_id TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
	project_id TEXT NOT NULL REFERENCES project ON DELETE CASCADE,
	scope INTEGER NOT NULL, -- 2 viewer, 3 editor, 4 admin (auth.h)
	PRIMARY KEY (user_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_by_project ON member(project_id, user_id);

-- Accounts as an OpenID provider knows them: by issuer and subject.  Names and addresses may be
-- reassigned to another person, so they identify nobody.
CREATE TABLE identity (
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	user_id TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX identity_by_user ON identity(user_id, issuer);

-- Single-use links for signing in to the server.  Deleted when used.
CREATE TABLE signin_link (
	hash BLOB PRIMARY KEY,
	expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions of browsers.
CREATE TABLE session (
	hash BLOB PRIMARY KEY,
	user_id TEXT REFERENCES user ON DELETE CASCADE, -- NULL: signed in by a link or a key
	project_id TEXT,                                -- with key_id; NULL: not signed in by a key
	key_id TEXT,
	created_ms INTEGER NOT NULL,
	seen_ms INTEGER NOT NULL,
	idle_ms INTEGER NOT NULL,                       -- ends after this time without a request
	expires_ms INTEGER NOT NULL,
	FOREIGN KEY (project_id, key_id) REFERENCES api_key ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_user ON session(user_id) WHERE user_id IS NOT NULL;
CREATE INDEX session_by_key ON session(project_id, key_id) WHERE key_id IS NOT NULL;

-- Completed sign-ins through a provider, so that no other server completes one again.
CREATE TABLE signin_used ( -- not copied
	id_prefix TEXT NOT NULL PRIMARY KEY,
	until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signin_used_by_end ON signin_used(until_ms);

-- Rate limits for passwords and sign-ins: one bucket per hashed caller, deleted once it is empty.
CREATE TABLE signin_try ( -- not copied
	what INTEGER NOT NULL PRIMARY KEY,
	empty_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX signin_try_by_end ON signin_try(empty_ms);

-- Audit log.  Each entry is written in the transaction of its change and expires by age.  Numbers
-- rise and are never reused, so a missing one is noticed.
CREATE TABLE audit (
	entry_id INTEGER PRIMARY KEY AUTOINCREMENT, -- sqlite
--postgres 	entry_id BIGINT PRIMARY KEY,
	at_ms INTEGER NOT NULL,
	project_id TEXT NOT NULL, -- '' for the server
	by_kind TEXT NOT NULL,    -- user, key, link, cli, server
	by_id TEXT NOT NULL,      -- of the user or key
	by_name TEXT NOT NULL,    -- at that time
	address TEXT NOT NULL,    -- of the caller; '' not over the network
	request_id TEXT NOT NULL, -- as in the log
	action TEXT NOT NULL,     -- such as key.create
	target TEXT NOT NULL,     -- id or name of the changed object
	facts TEXT NOT NULL       -- JSON object of texts
) STRICT;
CREATE INDEX audit_by_project ON audit(project_id, entry_id);
CREATE INDEX audit_by_age ON audit(at_ms);

-- Settings of a project.
CREATE TABLE project_setting (
	project_id TEXT NOT NULL REFERENCES project(project_id) ON DELETE CASCADE,
	key TEXT NOT NULL,   -- such as 'frames': which methods belong to the app
	value TEXT NOT NULL, -- JSON
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, key)
) WITHOUT ROWID;

-- Rules of a project.  All versions are stored; the latest of each kind applies.
CREATE TABLE ruleset (
	project_id TEXT NOT NULL,
	kind TEXT NOT NULL, -- 'anr_rules' (server/fleet/anr/anr_rules.h) or 'detectors' (server/query/detect/detect_rules.h)
	version INTEGER NOT NULL,
	value TEXT NOT NULL,
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, kind, version)
) STRICT, WITHOUT ROWID;

-- Named filters of the trace list.
CREATE TABLE saved_filter (
	project_id TEXT NOT NULL REFERENCES project ON DELETE CASCADE,
	name TEXT NOT NULL,
	query TEXT NOT NULL, -- query string of the list's address
	author TEXT NOT NULL,
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, name)
) STRICT, WITHOUT ROWID;

-- Builds and traces

-- Builds of the app: those that have a mapping and those that a trace names.  A mapping is stored
-- as uploaded (source) and compiled (map: method ids; retrace: R8 or ProGuard).
CREATE TABLE build (
	project_id TEXT NOT NULL REFERENCES project,
	build_id TEXT NOT NULL,
	map_sha256 TEXT NOT NULL DEFAULT '',    -- compiled method mapping; '' none
	source_sha256 TEXT NOT NULL DEFAULT '', -- its text as uploaded
	map_version TEXT NOT NULL DEFAULT '',
	entries INTEGER NOT NULL DEFAULT 0,
	malformed INTEGER NOT NULL DEFAULT 0,
	duplicates INTEGER NOT NULL DEFAULT 0,
	created_ms INTEGER NOT NULL,            -- first seen
	updated_ms INTEGER NOT NULL DEFAULT 0,  -- of the method mapping
	traces INTEGER NOT NULL DEFAULT 0,      -- that name this build
	app TEXT NOT NULL DEFAULT '',           -- of its latest trace
	version_name TEXT NOT NULL DEFAULT '',
	retrace_sha256 TEXT NOT NULL DEFAULT '',        -- compiled R8 or ProGuard mapping; '' none
	retrace_source_sha256 TEXT NOT NULL DEFAULT '', -- its text as uploaded
	retrace_id TEXT NOT NULL DEFAULT '',            -- its pg_map_id
	retrace_classes INTEGER NOT NULL DEFAULT 0,
	retrace_methods INTEGER NOT NULL DEFAULT 0,
	retrace_malformed INTEGER NOT NULL DEFAULT 0,
	retrace_ms INTEGER NOT NULL DEFAULT 0,
	-- sums over its traces whose names were counted (trace.named)
	names_traces INTEGER NOT NULL DEFAULT 0,  -- number of these traces
	names_lacking INTEGER NOT NULL DEFAULT 0, -- those with an id that no mapping resolves
	names_ids INTEGER NOT NULL DEFAULT 0,
	names_resolved INTEGER NOT NULL DEFAULT 0,
	names_slices INTEGER NOT NULL DEFAULT 0,
	names_resolved_slices INTEGER NOT NULL DEFAULT 0,
	commit_id TEXT NOT NULL DEFAULT '',      -- hex digits; '' not known
	commit_set INTEGER NOT NULL DEFAULT 0,   -- 1: set by the build; 0: by an upload, which any device may send
	first_malformed INTEGER NOT NULL DEFAULT -1,         -- offset in the mapping; -1 none
	retrace_first_malformed INTEGER NOT NULL DEFAULT -1,
	PRIMARY KEY (project_id, build_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_by_age ON build(project_id, created_ms, build_id);
CREATE INDEX build_by_map ON build(map_sha256) WHERE map_sha256 <> '';
CREATE INDEX build_by_source ON build(source_sha256) WHERE source_sha256 <> '';
CREATE INDEX build_by_retrace ON build(retrace_sha256) WHERE retrace_sha256 <> '';
CREATE INDEX build_by_retrace_source ON build(retrace_source_sha256) WHERE retrace_source_sha256 <> '';
CREATE INDEX build_with_commit ON build(project_id, version_name, commit_id) WHERE commit_set = 1;

-- Libraries that counted traces of a build have native frames of.  Late symbols of a library make
-- its builds' traces be counted again.
CREATE TABLE build_library (
	project_id TEXT NOT NULL,
	library TEXT NOT NULL,             -- its build of symbols: elf: and the build id
	build_id TEXT NOT NULL,            -- of the traces; '' without a build
	seen_day INTEGER NOT NULL,         -- last day of such a trace
	PRIMARY KEY (project_id, library, build_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_library_by_age ON build_library(seen_day);

-- Traces, from the upload on.
CREATE TABLE trace (
	project_id TEXT NOT NULL REFERENCES project,
	trace_id TEXT NOT NULL,
	key_id TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	content TEXT NOT NULL,      -- part=sha256 of each part; equal content makes two uploads the same
	state INTEGER NOT NULL,     -- 0 queued, or decoding if its job is claimed; 2 ready, 3 failed, 4 decoded file expired: decoded again on request
	created_ms INTEGER NOT NULL,
	ready_ms INTEGER NOT NULL DEFAULT 0,
	attempts INTEGER NOT NULL DEFAULT 0,
	upload_bytes INTEGER NOT NULL,
	-- from the uploader
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	version_code TEXT NOT NULL,
	build_id TEXT NOT NULL,
	mapping_id TEXT NOT NULL,
	device TEXT NOT NULL,
	os TEXT NOT NULL,
	abi TEXT NOT NULL,
	process TEXT NOT NULL,
	scenario TEXT NOT NULL,
	title TEXT NOT NULL DEFAULT '', -- set by people; PostgreSQL reads a row up to the last column that a search needs
	session_id TEXT NOT NULL,
	uuid TEXT NOT NULL,
	labels TEXT NOT NULL,
	pid INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	-- from the decoder
	format TEXT NOT NULL DEFAULT '',
	decoder_version INTEGER NOT NULL DEFAULT 0,
	slices INTEGER NOT NULL DEFAULT 0,
	threads INTEGER NOT NULL DEFAULT 0,
	methods INTEGER NOT NULL DEFAULT 0,
	max_depth INTEGER NOT NULL DEFAULT 0,
	duration_ns INTEGER NOT NULL DEFAULT 0,
	input_bytes INTEGER NOT NULL DEFAULT 0,
	decoded_bytes INTEGER NOT NULL DEFAULT 0,
	file_bytes INTEGER NOT NULL DEFAULT 0,
	losses INTEGER NOT NULL DEFAULT 0,
	repairs INTEGER NOT NULL DEFAULT 0,
	-- why it failed
	error_status TEXT NOT NULL DEFAULT '',
	error_message TEXT NOT NULL DEFAULT '',
	error_offset INTEGER NOT NULL DEFAULT -1,
	-- how many of its methods the build's mappings resolve
	named INTEGER NOT NULL DEFAULT 0,                 -- 0 not counted, 1 counted, 2 counted with an earlier mapping; -2, -4: 0, 2 and postponed
	names_ids INTEGER NOT NULL DEFAULT 0,             -- method ids in the trace
	names_resolved INTEGER NOT NULL DEFAULT 0,        -- of these, resolved by a mapping
	names_slices INTEGER NOT NULL DEFAULT 0,          -- slices of methods with ids
	names_resolved_slices INTEGER NOT NULL DEFAULT 0,
	file_sha256 TEXT NOT NULL DEFAULT '',             -- of the decoded file, to detect damage on disk
	pinned INTEGER NOT NULL DEFAULT 0,                -- 1: exempt from retention
	annotations INTEGER NOT NULL DEFAULT 0,           -- rows in annotation
	has_upload INTEGER NOT NULL DEFAULT 1,           -- 0: the upload expired, the decoded file remains
	exempt_reason TEXT NOT NULL DEFAULT '',                -- why retention spares it, such as 'exemplar'; '' no reason
	-- derived data
	rollup_state INTEGER NOT NULL DEFAULT 0, -- rollups: 0 waits, 1 counted, 2 unreadable, 3 postponed
	anr_state INTEGER NOT NULL DEFAULT 0,    -- ANRs and locks: 0 waits, 1 indexed, 2 unreadable, 3 postponed
	install INTEGER NOT NULL DEFAULT 0,      -- hash of the sending installation; 0 not given
	anr TEXT NOT NULL DEFAULT '',            -- key of its ANR's group; '' no ANR.  Retention spares the first of each group
	detected INTEGER NOT NULL DEFAULT 0,     -- detectors: version of the rules applied, 0 none, -1 unreadable, -2 postponed
	once INTEGER NOT NULL DEFAULT 0,         -- 1: the same content of that device and time is this trace (trace_once_by_time)
	recorded_ms INTEGER NOT NULL DEFAULT 0,  -- when it was recorded, by the server's clock; never after created_ms
	PRIMARY KEY (project_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX trace_once_by_key ON trace(project_id, idempotency_key)
	WHERE idempotency_key <> '';
CREATE UNIQUE INDEX trace_once_by_content ON trace(project_id, device, uuid, content) -- sqlite
--postgres CREATE UNIQUE INDEX trace_once_by_content ON trace(project_id, device, uuid, md5(content)) -- content may be long
	WHERE idempotency_key = '' AND device <> '' AND uuid <> '';
CREATE UNIQUE INDEX trace_once_by_time ON trace(project_id, device, started_ms, content) WHERE once = 1; -- sqlite
--postgres CREATE UNIQUE INDEX trace_once_by_time ON trace(project_id, device, started_ms, md5(content)) WHERE once = 1;
-- in SQLite with the columns that a search of the list reads: these rows are a third of the table's pages
CREATE INDEX trace_by_created ON trace(project_id, created_ms, trace_id, -- sqlite
	title, app, version_name, device, scenario, build_id, process); -- sqlite
--postgres CREATE INDEX trace_by_created ON trace(project_id, created_ms, trace_id);
-- in SQLite with the column that is read to find a label
CREATE INDEX trace_by_recorded ON trace(project_id, recorded_ms, labels); -- sqlite
--postgres CREATE INDEX trace_by_recorded ON trace(project_id, recorded_ms);
CREATE INDEX trace_by_duration ON trace(project_id, duration_ns, trace_id);
CREATE INDEX trace_by_slices ON trace(project_id, slices, trace_id);
CREATE INDEX trace_by_bytes ON trace(project_id, upload_bytes, trace_id);
CREATE INDEX trace_by_build ON trace(project_id, build_id, created_ms);
CREATE INDEX trace_by_device ON trace(project_id, device);
CREATE INDEX trace_by_end ON trace(project_id, state, created_ms, trace_id) WHERE state > 2; -- failed, archived
CREATE INDEX trace_pinned ON trace(project_id, created_ms, trace_id) WHERE pinned = 1;
CREATE INDEX trace_by_session ON trace(project_id, session_id) WHERE session_id <> '';
CREATE INDEX trace_by_id ON trace(trace_id); -- at startup only the file's name is known
CREATE INDEX trace_with_title ON trace(project_id, title) WHERE title <> '';
CREATE INDEX trace_by_mapping ON trace(project_id, mapping_id) WHERE mapping_id <> '';
CREATE INDEX trace_with_upload ON trace(project_id, created_ms, trace_id) WHERE has_upload=1;
CREATE INDEX trace_of_anr ON trace(project_id, anr, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_with_anr ON trace(project_id, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_decoded ON trace(project_id, ready_ms, trace_id) WHERE state=2 AND has_upload=1;
--postgres -- finds rare values without reading all rows; costs little to write
--postgres CREATE INDEX trace_ranges ON trace USING brin (
--postgres 	app text_bloom_ops(n_distinct_per_range=40),
--postgres 	version_name text_bloom_ops(n_distinct_per_range=40),
--postgres 	version_code text_bloom_ops(n_distinct_per_range=40),
--postgres 	os text_bloom_ops(n_distinct_per_range=40),
--postgres 	abi text_bloom_ops(n_distinct_per_range=40),
--postgres 	process text_bloom_ops(n_distinct_per_range=40),
--postgres 	scenario text_bloom_ops(n_distinct_per_range=40),
--postgres 	(CASE WHEN version_code<>'' AND trim(version_code,'0123456789')='' AND length(version_code)<19 THEN CAST(version_code AS BIGINT) END) int8_minmax_ops) WITH (pages_per_range=64);

-- Traces that wait for a stage of derived data: trace_stage_STAGE.  Findings: all counted traces (only
-- they have rollup cells), by the version of the rules.  SQLite has an index for each stage.
-- PostgreSQL has a table instead, for which schema/catalogue.py derives {stages}, {ranks} and
-- {columns} from these lines: updating any indexed column adds an entry to every index of the row,
-- and each stage updates a column of each trace.  So these columns are in no index, triggers
-- maintain the table, and pages of trace have free space for these updates.
CREATE INDEX trace_stage_names ON trace(project_id, trace_id) WHERE state = 2 AND named >= 0 AND named <> 1 AND build_id <> ''; -- sqlite
CREATE INDEX trace_stage_rollup ON trace(project_id, trace_id) WHERE state = 2 AND rollup_state = 0; -- sqlite
CREATE INDEX trace_stage_anr ON trace(project_id, trace_id) WHERE state = 2 AND anr_state = 0; -- sqlite
CREATE INDEX trace_stage_findings ON trace(project_id, detected, trace_id) WHERE state = 2 AND rollup_state = 1; -- sqlite
CREATE INDEX trace_without_findings ON trace(project_id) WHERE state = 2 AND rollup_state = 1 AND detected = 0; -- sqlite
--postgres ALTER TABLE trace SET (fillfactor=60);
--postgres CREATE TABLE trace_stage (
--postgres 	stage TEXT COLLATE "C" NOT NULL,
--postgres 	project_id TEXT COLLATE "C" NOT NULL,
--postgres 	rank BIGINT NOT NULL, -- the column between project and trace in the index above; 0: none
--postgres 	trace_id TEXT COLLATE "C" NOT NULL,
--postgres 	PRIMARY KEY (stage, project_id, rank, trace_id)
--postgres );
--postgres CREATE INDEX trace_without_findings ON trace_stage(project_id) WHERE stage = 'findings' AND rank = 0;
--postgres CREATE FUNCTION trace_stage_ranks(t trace) RETURNS BIGINT[] IMMUTABLE LANGUAGE sql AS $f$
--postgres 	SELECT ARRAY[{ranks}] $f$;
--postgres CREATE FUNCTION trace_stage_change() RETURNS trigger LANGUAGE plpgsql AS $f$
--postgres DECLARE stages CONSTANT TEXT[] := ARRAY[{stages}]; was BIGINT[]; now_is BIGINT[]; BEGIN
--postgres 	IF TG_OP <> 'INSERT' THEN was := trace_stage_ranks(OLD); END IF;
--postgres 	IF TG_OP <> 'DELETE' THEN now_is := trace_stage_ranks(NEW); END IF;
--postgres 	FOR i IN 1..cardinality(stages) LOOP
--postgres 		CONTINUE WHEN was[i] IS NOT DISTINCT FROM now_is[i];
--postgres 		IF was[i] IS NOT NULL THEN
--postgres 			DELETE FROM trace_stage WHERE stage=stages[i] AND project_id=OLD.project_id AND rank=was[i] AND trace_id=OLD.trace_id;
--postgres 		END IF;
--postgres 		IF now_is[i] IS NOT NULL THEN
--postgres 			INSERT INTO trace_stage VALUES (stages[i], NEW.project_id, now_is[i], NEW.trace_id) ON CONFLICT DO NOTHING;
--postgres 		END IF;
--postgres 	END LOOP;
--postgres 	RETURN NULL;
--postgres END $f$;
--postgres CREATE TRIGGER trace_stage_insert AFTER INSERT ON trace FOR EACH ROW WHEN (NEW.state=2) EXECUTE FUNCTION trace_stage_change();
--postgres CREATE TRIGGER trace_stage_update AFTER UPDATE OF {columns} ON trace
--postgres 	FOR EACH ROW WHEN (OLD.state=2 OR NEW.state=2) EXECUTE FUNCTION trace_stage_change();
--postgres CREATE TRIGGER trace_stage_delete AFTER DELETE ON trace FOR EACH ROW WHEN (OLD.state=2) EXECUTE FUNCTION trace_stage_change();

-- Distinct values of the columns of trace that a search for words reads, so that it compares few texts:
-- a word's traces are then found by equality.  Triggers add values; those whose traces were deleted remain.
CREATE TABLE trace_value ( -- not copied
	project_id TEXT NOT NULL,
	field INTEGER NOT NULL, -- 0 app, 1 version_name, 2 device, 3 scenario, 4 build_id, 5 process
	value TEXT NOT NULL,
	PRIMARY KEY (project_id, field, value)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER trace_value_insert AFTER INSERT ON trace BEGIN -- sqlite
	INSERT OR IGNORE INTO trace_value VALUES -- sqlite
		(NEW.project_id, 0, NEW.app), -- sqlite
		(NEW.project_id, 1, NEW.version_name), -- sqlite
		(NEW.project_id, 2, NEW.device), -- sqlite
		(NEW.project_id, 3, NEW.scenario), -- sqlite
		(NEW.project_id, 4, NEW.build_id), -- sqlite
		(NEW.project_id, 5, NEW.process); -- sqlite
END; -- sqlite
--postgres CREATE FUNCTION trace_value_add() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
--postgres 	INSERT INTO trace_value VALUES
--postgres 		(NEW.project_id, 0, NEW.app),
--postgres 		(NEW.project_id, 1, NEW.version_name),
--postgres 		(NEW.project_id, 2, NEW.device),
--postgres 		(NEW.project_id, 3, NEW.scenario),
--postgres 		(NEW.project_id, 4, NEW.build_id),
--postgres 		(NEW.project_id, 5, NEW.process) ON CONFLICT DO NOTHING;
--postgres 	RETURN NULL;
--postgres END $f$;
--postgres CREATE TRIGGER trace_value_insert AFTER INSERT ON trace FOR EACH ROW EXECUTE FUNCTION trace_value_add();

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

-- Uploaded files of a trace, and files found in its archive.
CREATE TABLE part (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	part TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	format TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	found INTEGER NOT NULL DEFAULT 0, -- 1: not uploaded separately, found by the decoder in the trace's archive
	PRIMARY KEY (project_id, trace_id, part),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX part_by_content ON part(sha256);

-- Objects of a store that are to be deleted, as no row refers to them.  A row is added by the
-- transaction that deletes the last reference, and removed when the object is.  Files in a data
-- folder have none.
CREATE TABLE file_drop ( -- not copied
	key TEXT PRIMARY KEY,      -- below the prefix of the store
	due_ms INTEGER NOT NULL,   -- of the next attempt, also while a server makes one
	attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_drop_due ON file_drop(due_ms);

-- Small uploads and decoded traces, instead of objects of a store (--small-files).  Only servers with
-- PostgreSQL and a store add rows.  Not copied: a migration copies them as files.
CREATE TABLE small_file ( -- not copied
	trace_id TEXT NOT NULL,
	part TEXT NOT NULL,        -- of the upload; 'decoded': the trace file
	project_id TEXT NOT NULL,
	content BLOB NOT NULL,
	PRIMARY KEY (trace_id, part),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
-- They are compressed already.
--postgres ALTER TABLE small_file ALTER COLUMN content SET STORAGE EXTERNAL;

-- The decode queue: one row per trace that is not decoded yet.  Projects are served in turn.
CREATE TABLE job (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	claimed INTEGER NOT NULL DEFAULT 0,
	due_ms INTEGER NOT NULL,           -- unclaimed: not before; claimed: end of the lease
	attempts INTEGER NOT NULL DEFAULT 0,
	owner TEXT NOT NULL DEFAULT '',
	queued_ms INTEGER NOT NULL,
	batch INTEGER NOT NULL DEFAULT 0,  -- number of the upload's transaction.  Only files of the highest may not be durable yet
	bytes INTEGER NOT NULL DEFAULT 0,  -- of the upload
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
--postgres CREATE INDEX job_by_owner ON job(owner) WHERE claimed = 1; -- leases are renewed by owner
CREATE INDEX job_by_project ON job(claimed, project_id, due_ms);

-- Uploaded mappings that are not in use: queued, being compiled, or failed.  At most one per build
-- and kind.
CREATE TABLE mapping_job (
	project_id TEXT NOT NULL,
	job_id TEXT NOT NULL,
	build_id TEXT NOT NULL,
	kind INTEGER NOT NULL,                  -- 0 method mapping, 1 R8's, 2 native symbols
	source_sha256 TEXT NOT NULL,            -- the upload; '' after it failed
	may_replace INTEGER NOT NULL DEFAULT 0, -- a mapping with other content
	claimed INTEGER NOT NULL DEFAULT 0,     -- 0 queued, 1 being compiled, 2 failed
	due_ms INTEGER NOT NULL,                -- as in job, like the next four
	attempts INTEGER NOT NULL DEFAULT 0,
	owner TEXT NOT NULL DEFAULT '',
	queued_ms INTEGER NOT NULL,
	bytes INTEGER NOT NULL DEFAULT 0,
	error_status TEXT NOT NULL DEFAULT '',  -- why it failed, or waits
	error_message TEXT NOT NULL DEFAULT '',
	error_offset INTEGER NOT NULL DEFAULT -1,
	PRIMARY KEY (project_id, job_id),
	FOREIGN KEY (project_id, build_id) REFERENCES build ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX mapping_job_by_build ON mapping_job(project_id, build_id, kind);
CREATE INDEX mapping_job_by_project ON mapping_job(claimed, project_id, due_ms);
CREATE INDEX mapping_job_by_content ON mapping_job(source_sha256) WHERE source_sha256<>'';

-- Builds with a new mapping, per stage of derived data: 'names' counts the names of their traces
-- again, 'rollup' renames methods, 'anr' reports.  Those up to after_id are done.
CREATE TABLE build_rename (
	project_id TEXT NOT NULL,
	build_id TEXT NOT NULL,
	stage TEXT NOT NULL,
	after_id TEXT NOT NULL DEFAULT '', -- of a trace or a method
	generation INTEGER NOT NULL,       -- changes with each mapping
	PRIMARY KEY (project_id, build_id, stage)
) STRICT, WITHOUT ROWID;

-- Resumable uploads that any of several servers can continue.  A single server stores them in
-- data/uploads instead.
CREATE TABLE resumable ( -- not copied
	project_id TEXT NOT NULL,
	resumable_id TEXT NOT NULL,
	key_id TEXT NOT NULL,               -- whose limits apply
	idempotency_key TEXT NOT NULL,      -- never ''
	metadata TEXT NOT NULL,             -- Upload-Metadata as received
	bytes INTEGER NOT NULL,             -- total length
	arrived INTEGER NOT NULL DEFAULT 0, -- Upload-Offset: durable in the storage
	pieces INTEGER NOT NULL DEFAULT 0,  -- rows in resumable_piece
	state INTEGER NOT NULL DEFAULT 0,   -- 0 open, 1 became a trace, 2 to be deleted after its pieces
	trace_id TEXT NOT NULL DEFAULT '',  -- the trace it became
	expires_ms INTEGER NOT NULL,
	owner TEXT NOT NULL DEFAULT '',     -- the current writer, a new value for each request
	until_ms INTEGER NOT NULL DEFAULT 0, -- after this time another request may write
	PRIMARY KEY (project_id, resumable_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX resumable_open ON resumable(project_id, key_id) WHERE state = 0;
CREATE INDEX resumable_by_end ON resumable(expires_ms);
CREATE INDEX resumable_to_clean ON resumable(until_ms) WHERE state > 0 AND (state = 2 OR pieces > 0);

-- Stored pieces of a resumable upload.
CREATE TABLE resumable_piece ( -- not copied
	project_id TEXT NOT NULL,
	resumable_id TEXT NOT NULL,
	start INTEGER NOT NULL, -- offset in the upload
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL,
	object TEXT NOT NULL,   -- key in the storage
	PRIMARY KEY (project_id, resumable_id, start)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX resumable_piece_by_object ON resumable_piece(object);

-- Tags of traces.
CREATE TABLE trace_tag (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	tag TEXT NOT NULL,
	PRIMARY KEY (project_id, trace_id, tag),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX trace_by_tag ON trace_tag(project_id, tag, trace_id);

-- Comments on a trace: at a time, on a method, or both.
CREATE TABLE annotation (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	annotation_id TEXT NOT NULL,
	author TEXT NOT NULL,
	text TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	edited_ms INTEGER NOT NULL DEFAULT 0,
	ts_ns INTEGER NOT NULL,        -- -1: no time
	dur_ns INTEGER NOT NULL,
	tid INTEGER NOT NULL,          -- -1: no thread
	method_index INTEGER NOT NULL, -- -1: no method; otherwise its last known index
	method_key TEXT NOT NULL,      -- finds the method after another decode: #id, or its name in the trace
	PRIMARY KEY (project_id, trace_id, annotation_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Uploads that crashed or stalled a decoder.  Stored until an admin decides or retention deletes
-- them.
CREATE TABLE quarantine (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	reason TEXT NOT NULL,             -- crash, loop, memory, forbidden, no_answer
	signal INTEGER NOT NULL,          -- of the last crash; 0 none
	format TEXT NOT NULL,             -- as far as recognised; '' not known
	decoder_version INTEGER NOT NULL,
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	deaths INTEGER NOT NULL,          -- number of decoders it ended
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX quarantine_by_age ON quarantine(project_id, first_ms, trace_id);

-- Uploads by capture rule and day.  Rule '' counts uploads that name a deleted rule.
CREATE TABLE capture_day (
	project_id TEXT NOT NULL,
	rule TEXT NOT NULL,
	day INTEGER NOT NULL,
	traces INTEGER NOT NULL,
	devices INTEGER NOT NULL, -- distinct, of uploads that name a device
	PRIMARY KEY (project_id, rule, day)
) WITHOUT ROWID;

-- Devices that capture_day has counted, for two days.
CREATE TABLE capture_device (
	day INTEGER NOT NULL,
	project_id TEXT NOT NULL,
	rule TEXT NOT NULL,
	device INTEGER NOT NULL, -- hash of the device's name
	PRIMARY KEY (day, project_id, rule, device)
) WITHOUT ROWID;

-- Rollups: sums over many traces.  A trace adds one row to rollup_delta per cell it is counted in,
-- in the transaction that sets trace.rollup_state.  From time to time a cell's deltas are added to its
-- parts, in the transaction that deletes them.  server/stats/rollup.h defines the bytes.  Ids of cells
-- and methods are hashes of their identity.

-- A cell is a day and a set of dimensions.
CREATE TABLE rollup_cell (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	day INTEGER NOT NULL,                 -- of the upload
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	build_id TEXT NOT NULL,
	mapping_id TEXT NOT NULL,
	scenario TEXT NOT NULL,
	device_class TEXT NOT NULL,           -- '' in cells of a label
	os TEXT NOT NULL,                     -- '' in cells of a label
	label TEXT NOT NULL,                  -- key=value of an indexed label; '' in the cell that counts every trace
	traces INTEGER NOT NULL,
	pending INTEGER NOT NULL,             -- of these, still in rollup_delta
	version INTEGER NOT NULL DEFAULT 0,   -- rises when deltas are added to the parts
	head BLOB NOT NULL,                   -- durations of traces, with examples
	attempts INTEGER NOT NULL DEFAULT 0,     -- failures in a row
	again_ms INTEGER NOT NULL DEFAULT 0,  -- next attempt not before
	PRIMARY KEY (project_id, cell_id)
) STRICT;
CREATE INDEX rollup_cell_by_day ON rollup_cell(project_id, label, day);
CREATE INDEX rollup_cell_by_age ON rollup_cell(day);
CREATE INDEX rollup_cell_pending ON rollup_cell(project_id, pending DESC) WHERE pending > 0;
CREATE INDEX rollup_cell_by_merged ON rollup_cell(project_id, day, app, version_name, build_id, mapping_id) WHERE label = '';

-- One metric of all methods of a cell.
CREATE TABLE rollup_part (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	metric INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, metric)
) STRICT;

-- Traces that are not in the parts of their cell yet.
CREATE TABLE rollup_delta (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	trace_id TEXT NOT NULL,
	duration_ns INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT;

-- Names of the method ids in rollups.  A later mapping changes the name.
CREATE TABLE rollup_method (
	project_id TEXT NOT NULL,
	method_id INTEGER NOT NULL,
	build_id TEXT NOT NULL,               -- of the traces with this id
	mapping_id TEXT NOT NULL,
	raw TEXT NOT NULL,                    -- in the trace: #id, or a name
	name TEXT NOT NULL,
	descriptor TEXT NOT NULL,             -- distinguishes methods of one name; '' not known
	named INTEGER NOT NULL,               -- 0: an id that no mapping resolves
	seen_day INTEGER NOT NULL DEFAULT 0,  -- no cell of a later day uses it
	PRIMARY KEY (project_id, method_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_method_by_name ON rollup_method(project_id, name, method_id); -- sqlite
--postgres CREATE INDEX rollup_method_by_name ON rollup_method USING hash (name); -- names may be long
CREATE INDEX rollup_method_by_build ON rollup_method(project_id, build_id, method_id);
CREATE INDEX rollup_method_by_mapping ON rollup_method(project_id, mapping_id, method_id) WHERE mapping_id <> '';
CREATE INDEX rollup_method_by_age ON rollup_method(seen_day);

-- Traces whose work in a stage of derived data failed temporarily (server/derive/pipeline.h).  A
-- column of trace says that the trace is postponed; the row says until when, and why.
CREATE TABLE postponed (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	stage TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	again_ms INTEGER NOT NULL, -- then tried again; once that has begun, then forgotten
	waits INTEGER NOT NULL,    -- 1 until then
	reason TEXT NOT NULL,
	PRIMARY KEY (project_id, trace_id, stage)
) STRICT, WITHOUT ROWID;
CREATE INDEX postponed_by_time ON postponed(stage, again_ms);

-- Merged call tree of a cell (server/stats/rollup_tree_bytes.c).
CREATE TABLE rollup_tree (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	day INTEGER NOT NULL,               -- of the cell
	pending INTEGER NOT NULL,           -- its rows in rollup_tree_delta
	version INTEGER NOT NULL DEFAULT 0, -- rises when deltas are added to data
	data BLOB NOT NULL,                 -- empty before the first time
	levels BLOB NOT NULL,               -- for adding deltas only; after data, so that queries do not read it
	PRIMARY KEY (project_id, cell_id)
) STRICT;
CREATE INDEX rollup_tree_pending ON rollup_tree(pending) WHERE pending > 0;

-- Call trees of traces that are not in their cell's tree yet.
CREATE TABLE rollup_tree_delta (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	trace_id TEXT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT;

-- Cells whose tree could not be updated: tried again after growing delays.  Separate from
-- rollup_tree, whose rows are large.
CREATE TABLE rollup_tree_later (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	again_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, cell_id)
) STRICT, WITHOUT ROWID;

-- The large nodes of a cell's tree, for queries over many cells.  Written with rollup_tree.data in
-- one transaction.  Separate, so that a query reads no large rows.
CREATE TABLE rollup_tree_reduced (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	data BLOB NOT NULL, -- as rollup_tree.data; empty: to be made
	PRIMARY KEY (project_id, cell_id)
) STRICT;
CREATE INDEX rollup_tree_unreduced ON rollup_tree_reduced(data, project_id, cell_id) WHERE data = x''; -- sqlite
--postgres CREATE INDEX rollup_tree_unreduced ON rollup_tree_reduced(project_id, cell_id) WHERE data = '\x';

-- Parts of all cells of a day that differ only by scenario, device class and system, summed once
-- the day is over.  A query without these dimensions reads one row instead of dozens.  Valid while
-- signature equals that of the cells and their versions.
CREATE TABLE rollup_merged (
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	build_id TEXT NOT NULL,
	mapping_id TEXT NOT NULL,
	due INTEGER NOT NULL DEFAULT 1,       -- number of changes to its cells since it was made
	signature INTEGER NOT NULL DEFAULT 0, -- 0: no parts
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_merged_due ON rollup_merged(day) WHERE due > 0;

-- Parts of rollup_merged, as in rollup_part.
CREATE TABLE rollup_merged_part (
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	build_id TEXT NOT NULL,
	mapping_id TEXT NOT NULL,
	metric INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id, metric)
) STRICT;

-- Search index of methods: which traces call them, on which thread, and the longest duration.  A
-- trace adds a row in slot 17 of its cells.  When a cell is updated these rows are packed: slot 16
-- lists traces and threads of a pack, slots 0 to 15 the calls of methods by the last four bits of
-- their id (server/stats/search_index.c).
CREATE TABLE rollup_post (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL,
	slot INTEGER NOT NULL,
	pack INTEGER NOT NULL, -- any number, shared by the rows of a pack
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, slot, pack)
) STRICT;

-- Findings of detectors: one row per trace and rollup cell it is counted in.  Deleted with the
-- trace (server/fleet/found.c).
CREATE TABLE finding (
	project_id TEXT NOT NULL,
	cell_id INTEGER NOT NULL, -- as in rollup_cell
	trace_id TEXT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX finding_by_trace ON finding(project_id, trace_id);

-- The engine that stores sums over traces.  No row: this catalogue.
CREATE TABLE fleet_engine (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Deleted traces whose rows it must erase.
CREATE TABLE fleet_erase (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	day INTEGER NOT NULL,              -- that it counts on
	hidden INTEGER NOT NULL DEFAULT 0, -- 1: no longer counted, but its rows are still stored
	PRIMARY KEY (project_id, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX fleet_erase_hidden ON fleet_erase(hidden, trace_id);

-- Regressions found in rollups, with their triage.
CREATE TABLE regression (
	project_id TEXT NOT NULL,
	regression_id TEXT NOT NULL,
	app TEXT NOT NULL,
	scenario TEXT NOT NULL,
	method TEXT NOT NULL,               -- '' for the scenario's duration
	descriptor TEXT NOT NULL,
	base TEXT NOT NULL,                 -- version before; '' with head: from a day on
	head TEXT NOT NULL,                 -- version after
	day INTEGER NOT NULL,               -- first day after the change
	percent INTEGER NOT NULL,           -- the percentile
	before_ns INTEGER NOT NULL,
	after_ns INTEGER NOT NULL,
	change_ppm INTEGER NOT NULL,        -- 100000 is 10 %
	low_ppm INTEGER NOT NULL,           -- 95 % confidence interval, lower end
	high_ppm INTEGER NOT NULL,          -- and upper end
	score_milli INTEGER NOT NULL,       -- thousandths of a standard error
	n_before INTEGER NOT NULL,          -- traces
	n_after INTEGER NOT NULL,
	before_trace TEXT NOT NULL,
	after_trace TEXT NOT NULL,
	status INTEGER NOT NULL,            -- 0 open, 1 acknowledged, 2 fixed, 3 came back
	fixed_in TEXT NOT NULL DEFAULT '',  -- a version
	fixed_day INTEGER NOT NULL DEFAULT 0,
	earlier TEXT NOT NULL DEFAULT '',   -- if it came back: the regression that had been fixed
	owner TEXT NOT NULL DEFAULT '',
	note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	first_ms INTEGER NOT NULL,          -- first found
	last_ms INTEGER NOT NULL,           -- last found
	kind INTEGER NOT NULL DEFAULT 0,      -- 1: a method that the version before did not have
	share_ppm INTEGER NOT NULL DEFAULT 0, -- of head's traces that have it
	PRIMARY KEY (project_id, regression_id)
) STRICT;
CREATE INDEX regression_by_series ON regression(project_id, app, scenario, method); -- sqlite
--postgres CREATE INDEX regression_by_series ON regression(project_id, app, scenario, regression_id);
CREATE INDEX regression_by_change ON regression(project_id, day, (after_ns-before_ns), regression_id);
-- SQLite's index includes the columns that the inbox counts and filters by.  PostgreSQL counts in
-- regression_by_status, which is small because equal entries share a key.
CREATE INDEX regression_by_last ON regression(project_id, last_ms, regression_id, status, muted_until_ms, app, owner); -- sqlite
--postgres CREATE INDEX regression_by_last ON regression(project_id, last_ms, regression_id);
--postgres CREATE INDEX regression_by_status ON regression(project_id, status, muted_until_ms, app, owner);

-- Events of a regression.
CREATE TABLE regression_history (
	project_id TEXT NOT NULL,
	regression_id TEXT NOT NULL,
	n INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	author TEXT NOT NULL,    -- 'tracewell' for the server
	event INTEGER NOT NULL,  -- server/catalogue/notify/hook.h
	status INTEGER NOT NULL, -- after the event
	version TEXT NOT NULL,   -- in which it was fixed
	PRIMARY KEY (project_id, regression_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX regression_history_by_time ON regression_history(project_id, at_ms);

-- ANRs and lock waits

-- One row per trace that has an ANR or lock waits.  It remains when the trace is deleted, as
-- rollups do.  Indexes cover all columns that queries of groups and locks filter by.
CREATE TABLE anr_trace (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	recorded_ms INTEGER NOT NULL,
	day INTEGER NOT NULL,                -- on which it was recorded
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	build_id TEXT NOT NULL,
	mapping_id TEXT NOT NULL,
	scenario TEXT NOT NULL,
	device TEXT NOT NULL,
	device_class TEXT NOT NULL,
	os TEXT NOT NULL,
	labels TEXT NOT NULL,                -- JSON object
	who INTEGER NOT NULL,                -- hash of the user or installation; 0 not given
	anr INTEGER NOT NULL,                -- 1: has a row in anr
	keyed INTEGER NOT NULL DEFAULT 0,    -- version of the rules that gave its ANR the key; 0 to be named
	key TEXT NOT NULL DEFAULT '',        -- of its ANR, as in anr
	kind TEXT NOT NULL DEFAULT '',
	rollup_generation INTEGER NOT NULL DEFAULT 0, -- anr_day.generation of the sums that count it; 0 none
	copied INTEGER NOT NULL DEFAULT 0,            -- 1: a fleet engine outside the catalogue has the row as it is keyed now
	PRIMARY KEY (project_id, trace_id)
) STRICT;
CREATE INDEX anr_trace_by_age ON anr_trace(day);
CREATE INDEX anr_trace_by_build ON anr_trace(project_id, build_id, trace_id);
CREATE INDEX anr_trace_by_mapping ON anr_trace(project_id, mapping_id, trace_id) WHERE mapping_id <> '';
CREATE INDEX anr_trace_by_rules ON anr_trace(project_id, keyed, trace_id) WHERE anr = 1;
CREATE INDEX anr_trace_unnamed ON anr_trace(project_id, trace_id) WHERE keyed = 0;
CREATE INDEX anr_trace_of_day_and_key ON anr_trace(project_id, day, key, kind, version_name, device, who, recorded_ms, trace_id, app, -- sqlite
	build_id, scenario, device_class, os, labels) WHERE anr = 1; -- sqlite
--postgres CREATE INDEX anr_trace_of_day_and_key ON anr_trace(project_id, day, key) WHERE anr = 1;
CREATE INDEX anr_trace_of_key ON anr_trace(project_id, key, day, kind, version_name, device, who, recorded_ms, trace_id, app, -- sqlite
	build_id, scenario, device_class, os, labels) WHERE anr = 1; -- sqlite
--postgres CREATE INDEX anr_trace_of_key ON anr_trace(project_id, key, day) WHERE anr = 1;
CREATE INDEX anr_trace_of_day ON anr_trace(project_id, day, trace_id, version_name, recorded_ms, device, app, build_id, scenario, -- sqlite
	device_class, os, labels); -- sqlite
--postgres CREATE INDEX anr_trace_of_day ON anr_trace(project_id, day, trace_id);
CREATE INDEX anr_trace_by_rollup ON anr_trace(project_id, day, rollup_generation);
CREATE INDEX anr_trace_uncopied ON anr_trace(project_id, trace_id) WHERE copied = 0 AND keyed <> 0;

-- Cause and group of an ANR.
CREATE TABLE anr (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	brief BLOB NOT NULL,  -- the part of the report that determines the cause, with the names of the trace
	base TEXT NOT NULL,   -- key of its group before rules merge groups; '' not known yet
	key TEXT NOT NULL,    -- and after
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	title TEXT NOT NULL,
	verdict TEXT NOT NULL,
	detail TEXT NOT NULL, -- JSON: frames, locks
	PRIMARY KEY (project_id, trace_id)
) STRICT;

-- What people decided about groups of ANRs.
CREATE TABLE anr_state (
	project_id TEXT NOT NULL,
	key TEXT NOT NULL,                    -- of the group, as in anr
	status INTEGER NOT NULL,              -- as in regression; 3 is computed from reports after fixed_ms
	fixed_in TEXT NOT NULL DEFAULT '',    -- a version
	fixed_ms INTEGER NOT NULL DEFAULT 0,  -- when it was set to fixed
	owner TEXT NOT NULL DEFAULT '',
	note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	author TEXT NOT NULL,                 -- of the last change
	changed_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, key)
) STRICT, WITHOUT ROWID;

-- Locks that threads of a trace waited for.
CREATE TABLE lock_wait (
	project_id TEXT NOT NULL,
	trace_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	dump INTEGER NOT NULL,     -- 1: from a thread dump, 0: from calls
	is_main INTEGER NOT NULL,  -- 1: the main thread waited
	raw_monitor TEXT NOT NULL, -- as in the trace
	raw_owner TEXT NOT NULL,
	source TEXT NOT NULL,      -- file and line of raw_owner
	monitor TEXT NOT NULL,     -- class; '' not known
	owner TEXT NOT NULL,       -- method that took the lock; '' not known
	holder TEXT NOT NULL,      -- name of the thread that held it
	waits INTEGER NOT NULL,
	timed INTEGER NOT NULL,    -- waits of known duration
	total_ns INTEGER NOT NULL,
	max_ns INTEGER NOT NULL,
	PRIMARY KEY (project_id, trace_id, seq)
) STRICT, WITHOUT ROWID;

-- Each day that anr_trace has rows of.  A change to a counted row raises the generation, which
-- invalidates all sums of the day; they are made again in the background.
CREATE TABLE anr_day (
	project_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	generation INTEGER NOT NULL DEFAULT 1,
	waiting INTEGER NOT NULL DEFAULT 1, -- 1: some of its rows are not counted
	pack_ms INTEGER NOT NULL DEFAULT 0, -- when its sums are due to be packed; 0: unchanged since then
	PRIMARY KEY (project_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX anr_day_unpacked ON anr_day(project_id, pack_ms) WHERE pack_ms > 0;
CREATE INDEX anr_day_waiting ON anr_day(project_id, day) WHERE waiting = 1;
CREATE INDEX anr_day_by_age ON anr_day(day);

-- Sums of ANR groups and of locks by day, so that a list reads one row per group and not one per
-- report.  Rows of anr_trace that are not counted yet are read with them.  server/stats/anr_rollup.c
-- defines the bytes.
CREATE TABLE anr_rollup (
	project_id TEXT NOT NULL,
	what INTEGER NOT NULL,         -- 0: ANRs, 1: locks
	fine INTEGER NOT NULL,         -- 1: by all dimensions that follow the name, 0: over all of them;
	                               -- 2: the rows with 0 of the day's names in one, unless they are too large
	day INTEGER NOT NULL,
	name TEXT NOT NULL,            -- key of the group or name of the lock; '' all of them
	app TEXT NOT NULL,
	version_name TEXT NOT NULL,
	build_id TEXT NOT NULL,
	scenario TEXT NOT NULL,
	device_class TEXT NOT NULL,
	os TEXT NOT NULL,
	generation INTEGER NOT NULL,   -- of the day when it was made
	data BLOB NOT NULL,
	PRIMARY KEY (project_id, what, fine, day, name, app, version_name, build_id, scenario, device_class, os) -- sqlite
	-- Method names may be longer than an index entry, so the key has hashes of the texts.  decode()
	-- makes the bytes because convert_to() is not allowed in a generated column.
--postgres 	name_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(name, '\', '\\'), 'escape'))) STORED,
--postgres 	dims_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(app || chr(31) || version_name || chr(31)
--postgres 		|| build_id || chr(31) || scenario || chr(31) || device_class || chr(31) || os, '\', '\\'), 'escape'))) STORED,
--postgres 	PRIMARY KEY (project_id, what, fine, day, name_hash, dims_hash)
) STRICT, WITHOUT ROWID;
--postgres ALTER TABLE anr_rollup ALTER COLUMN data SET STORAGE EXTERNAL; -- mostly hashes

-- Notifications

-- Webhooks of a project.
CREATE TABLE webhook (
	project_id TEXT NOT NULL,
	hook_id TEXT NOT NULL,
	name TEXT NOT NULL,
	url TEXT NOT NULL,                       -- may be a secret itself
	kind INTEGER NOT NULL,                   -- of body: server/catalogue/notify/hook.h
	events INTEGER NOT NULL,                 -- one bit per event
	secret TEXT NOT NULL,                    -- signs requests, so a hash is not enough
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	delivered_ms INTEGER NOT NULL DEFAULT 0, -- last successful delivery
	failing_ms INTEGER NOT NULL DEFAULT 0,   -- first failure since then; 0: it works
	fails INTEGER NOT NULL DEFAULT 0,        -- failed attempts in a row
	hold_ms INTEGER NOT NULL DEFAULT 0,      -- after a failure: only tests are sent before this time
	paused_ms INTEGER NOT NULL DEFAULT 0,
	paused_why TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, hook_id)
) STRICT;

-- Deliveries: one row per event and hook, written in the transaction of the event.  It remains as
-- the delivery log.
CREATE TABLE outbox (
	delivery_id INTEGER PRIMARY KEY AUTOINCREMENT, -- sqlite
--postgres 	delivery_id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	project_id TEXT NOT NULL,
	hook_id TEXT NOT NULL,           -- 'mail': the digest's addresses
	event_id TEXT NOT NULL,
	event INTEGER NOT NULL,          -- server/catalogue/notify/hook.h
	facts TEXT NOT NULL,             -- JSON object
	body TEXT NOT NULL DEFAULT '',   -- as last sent
	created_ms INTEGER NOT NULL,
	due_ms INTEGER NOT NULL,
	until_ms INTEGER NOT NULL,       -- abandoned after this time
	attempts INTEGER NOT NULL DEFAULT 0,
	attempts_left INTEGER NOT NULL,
	state INTEGER NOT NULL DEFAULT 0 -- 0 waiting, 1 delivered, 2 abandoned
) STRICT;
CREATE UNIQUE INDEX outbox_once ON outbox(project_id, hook_id, event_id);
CREATE INDEX outbox_by_hook ON outbox(project_id, hook_id, delivery_id);
CREATE INDEX outbox_waiting ON outbox(project_id, hook_id, due_ms) WHERE state = 0;
CREATE INDEX outbox_tests ON outbox(project_id, hook_id) WHERE state = 0 AND event = 6;
CREATE INDEX outbox_until ON outbox(until_ms) WHERE state = 0;
CREATE INDEX outbox_by_age ON outbox(created_ms) WHERE state <> 0;
CREATE INDEX outbox_anrs ON outbox(project_id, created_ms) WHERE event = 4;

-- Attempts of a delivery.
CREATE TABLE outbox_attempt (
	delivery_id INTEGER NOT NULL,
	n INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	took_ms INTEGER NOT NULL,
	http INTEGER NOT NULL, -- status; 0: no response
	error TEXT NOT NULL,   -- message; '' success
	PRIMARY KEY (delivery_id, n)
) STRICT, WITHOUT ROWID;

-- Periods whose digest was made.  The row claims the period, so each digest is sent once, also
-- across restarts.
CREATE TABLE digest_made (
	project_id TEXT NOT NULL,
	until_ms INTEGER NOT NULL, -- end of the period
	since_ms INTEGER NOT NULL,
	made_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, until_ms)
) STRICT, WITHOUT ROWID;

-- Alert rules of a project.
CREATE TABLE alert_rule (
	project_id TEXT NOT NULL,
	rule_id TEXT NOT NULL,
	name TEXT NOT NULL,
	kind INTEGER NOT NULL,        -- server/catalogue/notify/alert_kinds.def
	app TEXT NOT NULL,            -- '' any; so are the next two
	scenario TEXT NOT NULL,
	version_name TEXT NOT NULL,
	method TEXT NOT NULL,         -- of a rule for a method; '' otherwise
	percentile INTEGER NOT NULL,  -- of times
	limit_micro INTEGER NOT NULL, -- millionths of the kind's unit
	min_traces INTEGER NOT NULL,  -- traces or reports that a figure needs
	days INTEGER NOT NULL,        -- that it covers
	mail INTEGER NOT NULL,        -- 1: also to the addresses of the digest
	author TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, rule_id)
) STRICT, WITHOUT ROWID;

-- Figures that exceeded the limit of a rule.
CREATE TABLE alert (
	project_id TEXT NOT NULL,
	alert_id TEXT NOT NULL,           -- hash of rule, app and subject
	rule_id TEXT NOT NULL,
	app TEXT NOT NULL,
	subject TEXT NOT NULL,            -- version, or key of the ANR group
	title TEXT NOT NULL,              -- of the ANR group
	trace_id TEXT NOT NULL,           -- evidence
	value_micro INTEGER NOT NULL,
	traces INTEGER NOT NULL,
	is_over INTEGER NOT NULL,         -- 1 until the figure is clearly below the limit
	notified INTEGER NOT NULL DEFAULT 0,    -- number of events sent
	notified_ms INTEGER NOT NULL DEFAULT 0, -- time of the last event that was not its end
	quiet INTEGER NOT NULL DEFAULT 0,   -- 1: no event was sent for the current excess
	status INTEGER NOT NULL,          -- as in regression
	fixed_in TEXT NOT NULL DEFAULT '',
	owner TEXT NOT NULL DEFAULT '',
	note TEXT NOT NULL DEFAULT '',
	muted_until_ms INTEGER NOT NULL DEFAULT 0,
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	PRIMARY KEY (project_id, alert_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_by_last ON alert(project_id, last_ms, alert_id, status, muted_until_ms, app, owner); -- sqlite
--postgres CREATE INDEX alert_by_last ON alert(project_id, last_ms, alert_id);
--postgres CREATE INDEX alert_by_status ON alert(project_id, status, muted_until_ms, app, owner);

-- Issues that were created in the project's issue tracker.
CREATE TABLE ticket (
	project_id TEXT NOT NULL,
	tag TEXT NOT NULL,           -- identifies its subject, and is part of the issue's text
	kind INTEGER NOT NULL,       -- server/catalogue/notify/catalogue_ticket.h
	subject_id TEXT NOT NULL,    -- regression id (of the latest return), or key of the ANR group
	tracker TEXT NOT NULL,       -- 'github', 'gitlab', 'jira', 'gitea'
	title TEXT NOT NULL,
	body TEXT NOT NULL,
	assignee TEXT NOT NULL,      -- login; '' none
	author TEXT NOT NULL,
	ticket_key TEXT NOT NULL DEFAULT '', -- the issue's number or key there; '': not created yet
	url TEXT NOT NULL DEFAULT '',
	state INTEGER NOT NULL,      -- server/catalogue/notify/catalogue_ticket.h
	error TEXT NOT NULL DEFAULT '',
	attempts INTEGER NOT NULL DEFAULT 0,
	due_ms INTEGER NOT NULL,     -- next request; 0 none
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL, -- last change or check of its state
	PRIMARY KEY (project_id, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_due ON ticket (due_ms);

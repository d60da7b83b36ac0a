-- The catalogue in PostgreSQL, schema 1: the tables, columns and indexes of
-- schema/catalogue/0001_init.sql, which documents them, and a few tables that only PostgreSQL needs.
-- Text is ordered by its bytes.  An index entry is at most 2.7 KB, so long columns are not indexed.

-- The catalogue itself

-- Number of the last migration applied.
CREATE TABLE catalogue_schema (
	version BIGINT NOT NULL
);

-- One row: the id of this catalogue, stored in its data folder too, and the id of that folder, or ''.
CREATE TABLE catalogue_identity (
	identity TEXT COLLATE "C" NOT NULL,
	folder TEXT COLLATE "C" NOT NULL DEFAULT ''
);
INSERT INTO catalogue_identity VALUES (gen_random_uuid());

-- Leases for work that one of several servers does for all.
CREATE TABLE catalogue_lead (
	what TEXT COLLATE "C" PRIMARY KEY,
	owner TEXT COLLATE "C" NOT NULL,
	until_ms BIGINT NOT NULL
);

-- One row: the last number of the audit log.  A sequence would lose numbers with a rollback.
CREATE TABLE audit_last (
	one BIGINT PRIMARY KEY,
	entry_id BIGINT NOT NULL
);
INSERT INTO audit_last VALUES (1, 0);

-- Projects, keys and people

-- Every other row belongs to a project, except accounts and sign-ins, which belong to the server.
CREATE TABLE project (
	project_id TEXT COLLATE "C" PRIMARY KEY,
	name TEXT COLLATE "C" NOT NULL UNIQUE,
	created_ms BIGINT NOT NULL
);

-- API keys of a project.
CREATE TABLE api_key (
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project,
	key_id TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	scope BIGINT NOT NULL,
	hash BYTEA NOT NULL UNIQUE,
	created_ms BIGINT NOT NULL,
	last_seen_ms BIGINT NOT NULL DEFAULT 0,
	revoked_ms BIGINT NOT NULL DEFAULT 0,
	expires_ms BIGINT NOT NULL DEFAULT 0,
	seen_from TEXT COLLATE "C" NOT NULL DEFAULT '',
	rotated_ms BIGINT NOT NULL DEFAULT 0,
	old_hash BYTEA,
	old_until_ms BIGINT NOT NULL DEFAULT 0,
	old_seen_ms BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, key_id)
);
CREATE UNIQUE INDEX api_key_by_old ON api_key(old_hash) WHERE old_hash IS NOT NULL;

-- Accounts.
CREATE TABLE "user" (
	user_id TEXT COLLATE "C" PRIMARY KEY,
	name TEXT COLLATE "C" NOT NULL UNIQUE,
	password TEXT COLLATE "C" NOT NULL DEFAULT '',
	is_admin BIGINT NOT NULL DEFAULT 0,
	created_ms BIGINT NOT NULL,
	last_seen_ms BIGINT NOT NULL DEFAULT 0,
	is_disabled BIGINT NOT NULL DEFAULT 0
);

-- Roles of accounts in projects.
CREATE TABLE member (
	user_id TEXT COLLATE "C" NOT NULL REFERENCES "user" ON DELETE CASCADE,
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
	scope BIGINT NOT NULL,
	PRIMARY KEY (user_id, project_id)
);
CREATE INDEX member_by_project ON member(project_id, user_id);

-- Accounts as an OpenID provider knows them: by issuer and subject.
CREATE TABLE identity (
	issuer TEXT COLLATE "C" NOT NULL,
	subject TEXT COLLATE "C" NOT NULL,
	user_id TEXT COLLATE "C" NOT NULL REFERENCES "user" ON DELETE CASCADE,
	created_ms BIGINT NOT NULL,
	PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identity_by_user ON identity(user_id, issuer);

-- Single-use links for signing in to the server.
CREATE TABLE signin_link (
	hash BYTEA PRIMARY KEY,
	expires_ms BIGINT NOT NULL
);

-- Sessions of browsers.
CREATE TABLE session (
	hash BYTEA PRIMARY KEY,
	user_id TEXT COLLATE "C" REFERENCES "user" ON DELETE CASCADE,
	project_id TEXT COLLATE "C",
	key_id TEXT COLLATE "C",
	created_ms BIGINT NOT NULL,
	seen_ms BIGINT NOT NULL,
	idle_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	FOREIGN KEY (project_id, key_id) REFERENCES api_key ON DELETE CASCADE
);
CREATE INDEX session_by_user ON session(user_id) WHERE user_id IS NOT NULL;
CREATE INDEX session_by_key ON session(project_id, key_id) WHERE key_id IS NOT NULL;

-- Completed sign-ins through a provider, so that no other server completes one again.
CREATE TABLE signin_used (
	mark TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	until_ms BIGINT NOT NULL
);
CREATE INDEX signin_used_by_end ON signin_used(until_ms);

-- Rate limits for passwords and sign-ins: one bucket per hashed caller, deleted once it is empty.
CREATE TABLE signin_try (
	what BIGINT NOT NULL PRIMARY KEY,
	empty_ms BIGINT NOT NULL
);
CREATE INDEX signin_try_by_end ON signin_try(empty_ms);

-- Audit log.
CREATE TABLE audit (
	entry_id BIGINT PRIMARY KEY,
	at_ms BIGINT NOT NULL,
	project_id TEXT COLLATE "C" NOT NULL,
	by_kind TEXT COLLATE "C" NOT NULL,
	by_id TEXT COLLATE "C" NOT NULL,
	by_name TEXT COLLATE "C" NOT NULL,
	address TEXT COLLATE "C" NOT NULL,
	request_id TEXT COLLATE "C" NOT NULL,
	action TEXT COLLATE "C" NOT NULL,
	target TEXT COLLATE "C" NOT NULL,
	facts TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_project ON audit(project_id, entry_id);
CREATE INDEX audit_by_age ON audit(at_ms);

-- Settings of a project.
CREATE TABLE project_setting (
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project(project_id) ON DELETE CASCADE,
	key TEXT COLLATE "C" NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	updated_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, key)
);

-- Rules of a project.
CREATE TABLE ruleset (
	project_id TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	version BIGINT NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	created_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, kind, version)
);

-- Named filters of the trace list.
CREATE TABLE saved_filter (
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
	name TEXT COLLATE "C" NOT NULL,
	query TEXT COLLATE "C" NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	updated_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, name)
);

-- Builds and traces

-- Builds of the app: those that have a mapping and those that a trace names.
CREATE TABLE build (
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project,
	build_id TEXT COLLATE "C" NOT NULL,
	map_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '',
	source_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '',
	map_version TEXT COLLATE "C" NOT NULL DEFAULT '',
	entries BIGINT NOT NULL DEFAULT 0,
	malformed BIGINT NOT NULL DEFAULT 0,
	duplicates BIGINT NOT NULL DEFAULT 0,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL DEFAULT 0,
	traces BIGINT NOT NULL DEFAULT 0,
	app TEXT COLLATE "C" NOT NULL DEFAULT '',
	version_name TEXT COLLATE "C" NOT NULL DEFAULT '',
	retrace_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '',
	retrace_source_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '',
	retrace_id TEXT COLLATE "C" NOT NULL DEFAULT '',
	retrace_classes BIGINT NOT NULL DEFAULT 0,
	retrace_methods BIGINT NOT NULL DEFAULT 0,
	retrace_malformed BIGINT NOT NULL DEFAULT 0,
	retrace_ms BIGINT NOT NULL DEFAULT 0,
	names_traces BIGINT NOT NULL DEFAULT 0,
	names_lacking BIGINT NOT NULL DEFAULT 0,
	names_ids BIGINT NOT NULL DEFAULT 0,
	names_resolved BIGINT NOT NULL DEFAULT 0,
	names_slices BIGINT NOT NULL DEFAULT 0,
	names_resolved_slices BIGINT NOT NULL DEFAULT 0,
	commit_id TEXT COLLATE "C" NOT NULL DEFAULT '',
	commit_set BIGINT NOT NULL DEFAULT 0,
	first_malformed BIGINT NOT NULL DEFAULT -1,
	retrace_first_malformed BIGINT NOT NULL DEFAULT -1,
	PRIMARY KEY (project_id, build_id)
);
CREATE INDEX build_by_age ON build(project_id, created_ms, build_id);
CREATE INDEX build_by_map ON build(map_sha256) WHERE map_sha256 <> '';
CREATE INDEX build_by_source ON build(source_sha256) WHERE source_sha256 <> '';
CREATE INDEX build_by_retrace ON build(retrace_sha256) WHERE retrace_sha256 <> '';
CREATE INDEX build_by_retrace_source ON build(retrace_source_sha256) WHERE retrace_source_sha256 <> '';
CREATE INDEX build_with_commit ON build(project_id, version_name, commit_id) WHERE commit_set = 1;

-- The native libraries of builds.
CREATE TABLE build_library (
	project_id TEXT COLLATE "C" NOT NULL,
	library TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	seen_day BIGINT NOT NULL,
	PRIMARY KEY (project_id, library, build_id)
);
CREATE INDEX build_library_by_age ON build_library(seen_day);

-- Traces, from the upload on.
CREATE TABLE trace (
	project_id TEXT COLLATE "C" NOT NULL REFERENCES project,
	trace_id TEXT COLLATE "C" NOT NULL,
	key_id TEXT COLLATE "C" NOT NULL,
	idempotency_key TEXT COLLATE "C" NOT NULL,
	content TEXT COLLATE "C" NOT NULL,
	state BIGINT NOT NULL,
	created_ms BIGINT NOT NULL,
	ready_ms BIGINT NOT NULL DEFAULT 0,
	tries BIGINT NOT NULL DEFAULT 0,
	upload_bytes BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	version_code TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	device TEXT COLLATE "C" NOT NULL,
	os TEXT COLLATE "C" NOT NULL,
	abi TEXT COLLATE "C" NOT NULL,
	process TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	session_id TEXT COLLATE "C" NOT NULL,
	uuid TEXT COLLATE "C" NOT NULL,
	labels TEXT COLLATE "C" NOT NULL,
	pid BIGINT NOT NULL,
	started_ms BIGINT NOT NULL,
	format TEXT COLLATE "C" NOT NULL DEFAULT '',
	decoder_version BIGINT NOT NULL DEFAULT 0,
	slices BIGINT NOT NULL DEFAULT 0,
	threads BIGINT NOT NULL DEFAULT 0,
	methods BIGINT NOT NULL DEFAULT 0,
	max_depth BIGINT NOT NULL DEFAULT 0,
	duration_ns BIGINT NOT NULL DEFAULT 0,
	input_bytes BIGINT NOT NULL DEFAULT 0,
	decoded_bytes BIGINT NOT NULL DEFAULT 0,
	file_bytes BIGINT NOT NULL DEFAULT 0,
	losses BIGINT NOT NULL DEFAULT 0,
	repairs BIGINT NOT NULL DEFAULT 0,
	error_status TEXT COLLATE "C" NOT NULL DEFAULT '',
	error_message TEXT COLLATE "C" NOT NULL DEFAULT '',
	error_offset BIGINT NOT NULL DEFAULT -1,
	named BIGINT NOT NULL DEFAULT 0,
	names_ids BIGINT NOT NULL DEFAULT 0,
	names_resolved BIGINT NOT NULL DEFAULT 0,
	names_slices BIGINT NOT NULL DEFAULT 0,
	names_resolved_slices BIGINT NOT NULL DEFAULT 0,
	file_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '',
	title TEXT COLLATE "C" NOT NULL DEFAULT '',
	pinned BIGINT NOT NULL DEFAULT 0,
	annotations BIGINT NOT NULL DEFAULT 0,
	upload_kept BIGINT NOT NULL DEFAULT 1,
	kept_for TEXT COLLATE "C" NOT NULL DEFAULT '',
	rollup_state BIGINT NOT NULL DEFAULT 0,
	anr_state BIGINT NOT NULL DEFAULT 0,
	install BIGINT NOT NULL DEFAULT 0,
	anr TEXT COLLATE "C" NOT NULL DEFAULT '',
	detected BIGINT NOT NULL DEFAULT 0,
	once BIGINT NOT NULL DEFAULT 0,
	recorded_ms BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id)
);
CREATE UNIQUE INDEX trace_once_by_key ON trace(project_id, idempotency_key)
	WHERE idempotency_key <> '';
CREATE UNIQUE INDEX trace_once_by_content ON trace(project_id, device, uuid, md5(content)) -- content may be long
	WHERE idempotency_key = '' AND device <> '' AND uuid <> '';
CREATE UNIQUE INDEX trace_once_by_time ON trace(project_id, device, started_ms, md5(content)) WHERE once = 1;
CREATE INDEX trace_by_created ON trace(project_id, created_ms, trace_id);
CREATE INDEX trace_by_recorded ON trace(project_id, recorded_ms);
CREATE INDEX trace_by_duration ON trace(project_id, duration_ns, trace_id);
CREATE INDEX trace_by_slices ON trace(project_id, slices, trace_id);
CREATE INDEX trace_by_bytes ON trace(project_id, upload_bytes, trace_id);
CREATE INDEX trace_by_build ON trace(project_id, build_id, created_ms);
CREATE INDEX trace_by_session ON trace(project_id, session_id) WHERE session_id <> '';
CREATE INDEX trace_by_id ON trace(trace_id);
CREATE INDEX trace_uncounted ON trace(project_id, trace_id) WHERE state = 2 AND named >= 0 AND named <> 1 AND build_id <> '';
CREATE INDEX trace_by_mapping ON trace(project_id, mapping_id) WHERE mapping_id <> '';
CREATE INDEX trace_with_upload ON trace(project_id, created_ms, trace_id) WHERE upload_kept=1;
CREATE INDEX trace_rollup_todo ON trace(project_id, created_ms, trace_id) WHERE state = 2 AND rollup_state = 0;
CREATE INDEX trace_anr_todo ON trace(project_id, trace_id) WHERE state = 2 AND anr_state = 0;
CREATE INDEX trace_of_anr ON trace(project_id, anr, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_with_anr ON trace(project_id, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_decoded ON trace(project_id, ready_ms, trace_id) WHERE state=2 AND upload_kept=1;
CREATE INDEX trace_detected ON trace(project_id, detected, trace_id) WHERE state = 2 AND rollup_state = 1;

-- Changes of counters until they are added to the counter's row (catalogue_shared.c).
CREATE TABLE count_delta (
	project_id TEXT COLLATE "C" NOT NULL,
	counter BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	traces BIGINT NOT NULL,
	devices BIGINT NOT NULL,
	PRIMARY KEY (project_id, counter, name, day, trace_id, traces)
);

-- Uploaded files of a trace, and files found in its archive.
CREATE TABLE part (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	part TEXT COLLATE "C" NOT NULL,
	sha256 TEXT COLLATE "C" NOT NULL,
	format TEXT COLLATE "C" NOT NULL,
	bytes BIGINT NOT NULL,
	found BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id, part),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
);
CREATE INDEX part_by_content ON part(sha256);

-- Objects of a store that are to be deleted, as no row refers to them.
CREATE TABLE file_drop (
	key TEXT COLLATE "C" PRIMARY KEY,
	due_ms BIGINT NOT NULL,
	tries BIGINT NOT NULL
);
CREATE INDEX file_drop_due ON file_drop(due_ms);

-- The decode queue: one row per trace that is not decoded yet.
CREATE TABLE job (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	claimed BIGINT NOT NULL DEFAULT 0,
	due_ms BIGINT NOT NULL,
	tries BIGINT NOT NULL DEFAULT 0,
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	queued_ms BIGINT NOT NULL,
	batch BIGINT NOT NULL DEFAULT 0,
	bytes BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
);
CREATE INDEX job_by_owner ON job(owner) WHERE claimed = 1; -- leases are renewed by owner
CREATE INDEX job_by_project ON job(claimed, project_id, due_ms);

-- Uploaded mappings that are not in use: queued, being compiled, or failed.
CREATE TABLE mapping_job (
	project_id TEXT COLLATE "C" NOT NULL,
	job_id TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	kind BIGINT NOT NULL,
	source_sha256 TEXT COLLATE "C" NOT NULL,
	may_replace BIGINT NOT NULL DEFAULT 0,
	claimed BIGINT NOT NULL DEFAULT 0,
	due_ms BIGINT NOT NULL,
	tries BIGINT NOT NULL DEFAULT 0,
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	queued_ms BIGINT NOT NULL,
	bytes BIGINT NOT NULL DEFAULT 0,
	error_status TEXT COLLATE "C" NOT NULL DEFAULT '',
	error_message TEXT COLLATE "C" NOT NULL DEFAULT '',
	error_offset BIGINT NOT NULL DEFAULT -1,
	PRIMARY KEY (project_id, job_id),
	FOREIGN KEY (project_id, build_id) REFERENCES build ON DELETE CASCADE
);
CREATE UNIQUE INDEX mapping_job_by_build ON mapping_job(project_id, build_id, kind);
CREATE INDEX mapping_job_by_project ON mapping_job(claimed, project_id, due_ms);
CREATE INDEX mapping_job_by_content ON mapping_job(source_sha256) WHERE source_sha256<>'';

-- Builds with a new mapping: names of their traces after after_id are to be counted again.
CREATE TABLE recount (
	project_id TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	after_id TEXT COLLATE "C" NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, build_id)
);

-- Resumable uploads that any of several servers can continue.
CREATE TABLE resumable (
	project_id TEXT COLLATE "C" NOT NULL,
	resumable_id TEXT COLLATE "C" NOT NULL,
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

-- Stored pieces of a resumable upload.
CREATE TABLE resumable_piece (
	project_id TEXT COLLATE "C" NOT NULL,
	resumable_id TEXT COLLATE "C" NOT NULL,
	start BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	sha256 TEXT COLLATE "C" NOT NULL,
	object TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, resumable_id, start)
);
CREATE UNIQUE INDEX resumable_piece_by_object ON resumable_piece(object);

-- Tags of traces.
CREATE TABLE trace_tag (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	tag TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, trace_id, tag),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
);
CREATE INDEX trace_by_tag ON trace_tag(project_id, tag, trace_id);

-- Comments on a trace: at a time, on a method, or both.
CREATE TABLE annotation (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	annotation_id TEXT COLLATE "C" NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	text TEXT COLLATE "C" NOT NULL,
	created_ms BIGINT NOT NULL,
	edited_ms BIGINT NOT NULL DEFAULT 0,
	ts_ns BIGINT NOT NULL,
	dur_ns BIGINT NOT NULL,
	tid BIGINT NOT NULL,
	method_index BIGINT NOT NULL,
	method_key TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, trace_id, annotation_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
);

-- Uploads that crashed or stalled a decoder.
CREATE TABLE quarantine (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	signal BIGINT NOT NULL,
	format TEXT COLLATE "C" NOT NULL,
	decoder_version BIGINT NOT NULL,
	first_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	deaths BIGINT NOT NULL,
	PRIMARY KEY (project_id, trace_id),
	FOREIGN KEY (project_id, trace_id) REFERENCES trace ON DELETE CASCADE
);
CREATE INDEX quarantine_by_age ON quarantine(project_id, first_ms, trace_id);

-- Uploads by capture rule and day.
CREATE TABLE capture_day (
	project_id TEXT COLLATE "C" NOT NULL,
	rule TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	traces BIGINT NOT NULL,
	devices BIGINT NOT NULL,
	PRIMARY KEY (project_id, rule, day)
);

-- Devices that capture_day has counted, for two days.
CREATE TABLE capture_device (
	day BIGINT NOT NULL,
	project_id TEXT COLLATE "C" NOT NULL,
	rule TEXT COLLATE "C" NOT NULL,
	device BIGINT NOT NULL,
	PRIMARY KEY (day, project_id, rule, device)
);

-- Rollups: sums over many traces.

-- A cell is a day and a set of dimensions.
CREATE TABLE rollup_cell (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	day BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	device_class TEXT COLLATE "C" NOT NULL,
	os TEXT COLLATE "C" NOT NULL,
	label TEXT COLLATE "C" NOT NULL,
	traces BIGINT NOT NULL,
	pending BIGINT NOT NULL,
	version BIGINT NOT NULL DEFAULT 0,
	head BYTEA NOT NULL,
	tries BIGINT NOT NULL DEFAULT 0,
	again_ms BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, cell_id)
);
CREATE INDEX rollup_cell_by_day ON rollup_cell(project_id, label, day);
CREATE INDEX rollup_cell_by_age ON rollup_cell(day);
CREATE INDEX rollup_cell_pending ON rollup_cell(project_id, pending DESC) WHERE pending > 0;
CREATE INDEX rollup_cell_by_wide ON rollup_cell(project_id, day, app, version_name, build_id, mapping_id) WHERE label = '';

-- One metric of all methods of a cell.
CREATE TABLE rollup_part (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	metric BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id, metric)
);

-- Traces that are not in the parts of their cell yet.
CREATE TABLE rollup_delta (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	duration_ns BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
);

-- Names of the method ids in rollups.
CREATE TABLE rollup_method (
	project_id TEXT COLLATE "C" NOT NULL,
	method_id BIGINT NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	raw TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	descriptor TEXT COLLATE "C" NOT NULL,
	named BIGINT NOT NULL,
	seen_day BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, method_id)
);
CREATE INDEX rollup_method_by_name ON rollup_method USING hash (name); -- names may be long
CREATE INDEX rollup_method_by_build ON rollup_method(project_id, build_id, method_id);
CREATE INDEX rollup_method_by_mapping ON rollup_method(project_id, mapping_id, method_id) WHERE mapping_id <> '';
CREATE INDEX rollup_method_by_age ON rollup_method(seen_day);

-- Builds with a new mapping: their methods after after_id are to be named again.
CREATE TABLE rollup_rename (
	project_id TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	after_id BIGINT NOT NULL DEFAULT 0,
	generation BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, build_id)
);

-- Traces whose work in a stage of derived data failed temporarily (server/derive/pipeline.h).  A
-- column of trace says that the trace is postponed; the row says until when, and why.
CREATE TABLE postponed (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	stage TEXT COLLATE "C" NOT NULL,
	tries BIGINT NOT NULL,
	again_ms BIGINT NOT NULL, -- then tried again; once that has begun, then forgotten
	waits BIGINT NOT NULL,    -- 1 until then
	reason TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, trace_id, stage)
);
CREATE INDEX postponed_by_time ON postponed(stage, again_ms);

-- Merged call tree of a cell.
CREATE TABLE rollup_tree (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	day BIGINT NOT NULL,
	pending BIGINT NOT NULL,
	version BIGINT NOT NULL DEFAULT 0,
	data BYTEA NOT NULL,
	levels BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id)
);
CREATE INDEX rollup_tree_pending ON rollup_tree(pending) WHERE pending > 0;

-- Call trees of traces that are not in their cell's tree yet.
CREATE TABLE rollup_tree_delta (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
);

-- Cells whose tree could not be updated: tried again after growing delays.
CREATE TABLE rollup_tree_later (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	tries BIGINT NOT NULL,
	again_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, cell_id)
);

-- The large nodes of a cell's tree, for queries over many cells.
CREATE TABLE rollup_tree_rough (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id)
);
CREATE INDEX rollup_tree_unrough ON rollup_tree_rough(project_id, cell_id) WHERE data = '\x';

-- Parts of all cells of a day that differ only by scenario, device class and system, summed once
-- the day is over.
CREATE TABLE rollup_wide (
	project_id TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	due BIGINT NOT NULL DEFAULT 1,
	sign BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id)
);
CREATE INDEX rollup_wide_due ON rollup_wide(day) WHERE due > 0;

-- Parts of rollup_wide, as in rollup_part.
CREATE TABLE rollup_wide_part (
	project_id TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	metric BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, day, app, version_name, build_id, mapping_id, metric)
);

-- Search index of methods: which traces call them, on which thread, and the longest duration.
CREATE TABLE rollup_post (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	slot BIGINT NOT NULL,
	pack BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id, slot, pack)
);

-- Findings of detectors: one row per trace and rollup cell it is counted in.
CREATE TABLE finding (
	project_id TEXT COLLATE "C" NOT NULL,
	cell_id BIGINT NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (project_id, cell_id, trace_id)
);
CREATE INDEX finding_by_trace ON finding(project_id, trace_id);

-- The engine that stores sums over traces.  No row: this catalogue.
CREATE TABLE fleet_engine (name TEXT COLLATE "C" PRIMARY KEY);

-- Deleted traces whose rows it must erase.
CREATE TABLE fleet_erase (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	hidden BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id)
);
CREATE INDEX fleet_erase_hidden ON fleet_erase(hidden, trace_id);

-- Regressions found in rollups, with their triage.
CREATE TABLE regression (
	project_id TEXT COLLATE "C" NOT NULL,
	regression_id TEXT COLLATE "C" NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	method TEXT COLLATE "C" NOT NULL,
	descriptor TEXT COLLATE "C" NOT NULL,
	base TEXT COLLATE "C" NOT NULL,
	head TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	percent BIGINT NOT NULL,
	before_ns BIGINT NOT NULL,
	after_ns BIGINT NOT NULL,
	change_ppm BIGINT NOT NULL,
	low_ppm BIGINT NOT NULL,
	high_ppm BIGINT NOT NULL,
	score_milli BIGINT NOT NULL,
	n_before BIGINT NOT NULL,
	n_after BIGINT NOT NULL,
	before_trace TEXT COLLATE "C" NOT NULL,
	after_trace TEXT COLLATE "C" NOT NULL,
	status BIGINT NOT NULL,
	fixed_in TEXT COLLATE "C" NOT NULL DEFAULT '',
	fixed_day BIGINT NOT NULL DEFAULT 0,
	earlier TEXT COLLATE "C" NOT NULL DEFAULT '',
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	note TEXT COLLATE "C" NOT NULL DEFAULT '',
	muted_until_ms BIGINT NOT NULL DEFAULT 0,
	first_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	kind BIGINT NOT NULL DEFAULT 0,
	share_ppm BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, regression_id)
);
CREATE INDEX regression_by_series ON regression(project_id, app, scenario, regression_id);

-- Events of a regression.
CREATE TABLE regression_history (
	project_id TEXT COLLATE "C" NOT NULL,
	regression_id TEXT COLLATE "C" NOT NULL,
	n BIGINT NOT NULL,
	at_ms BIGINT NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	event BIGINT NOT NULL,
	status BIGINT NOT NULL,
	version TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, regression_id, n)
);
CREATE INDEX regression_history_by_time ON regression_history(project_id, at_ms);

-- ANRs and lock waits

-- One row per trace that has an ANR or lock waits.
CREATE TABLE anr_trace (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	recorded_ms BIGINT NOT NULL,
	day BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	mapping_id TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	device TEXT COLLATE "C" NOT NULL,
	device_class TEXT COLLATE "C" NOT NULL,
	os TEXT COLLATE "C" NOT NULL,
	labels TEXT COLLATE "C" NOT NULL,
	who BIGINT NOT NULL,
	anr BIGINT NOT NULL,
	keyed BIGINT NOT NULL DEFAULT 0,
	key TEXT COLLATE "C" NOT NULL DEFAULT '',
	kind TEXT COLLATE "C" NOT NULL DEFAULT '',
	rollup_generation BIGINT NOT NULL DEFAULT 0,
	copied BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (project_id, trace_id)
);
CREATE INDEX anr_trace_by_age ON anr_trace(day);
CREATE INDEX anr_trace_by_build ON anr_trace(project_id, build_id, trace_id);
CREATE INDEX anr_trace_by_mapping ON anr_trace(project_id, mapping_id, trace_id) WHERE mapping_id <> '';
CREATE INDEX anr_trace_by_rules ON anr_trace(project_id, keyed, trace_id) WHERE anr = 1;
CREATE INDEX anr_trace_unnamed ON anr_trace(project_id, trace_id) WHERE keyed = 0;
CREATE INDEX anr_trace_of_day_and_key ON anr_trace(project_id, day, key) WHERE anr = 1;
CREATE INDEX anr_trace_of_key ON anr_trace(project_id, key, day) WHERE anr = 1;
CREATE INDEX anr_trace_of_day ON anr_trace(project_id, day, trace_id);
CREATE INDEX anr_trace_by_rollup ON anr_trace(project_id, day, rollup_generation);
CREATE INDEX anr_trace_uncopied ON anr_trace(project_id, trace_id) WHERE copied = 0 AND keyed <> 0;

-- Cause and group of an ANR.
CREATE TABLE anr (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	brief BYTEA NOT NULL,
	base TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	title TEXT COLLATE "C" NOT NULL,
	verdict TEXT COLLATE "C" NOT NULL,
	detail TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (project_id, trace_id)
);

-- What people decided about groups of ANRs.
CREATE TABLE anr_state (
	project_id TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	status BIGINT NOT NULL,
	fixed_in TEXT COLLATE "C" NOT NULL DEFAULT '',
	fixed_ms BIGINT NOT NULL DEFAULT 0,
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	note TEXT COLLATE "C" NOT NULL DEFAULT '',
	muted_until_ms BIGINT NOT NULL DEFAULT 0,
	author TEXT COLLATE "C" NOT NULL,
	changed_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, key)
);

-- Locks that threads of a trace waited for.
CREATE TABLE lock_wait (
	project_id TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	seq BIGINT NOT NULL,
	dump BIGINT NOT NULL,
	is_main BIGINT NOT NULL,
	raw_monitor TEXT COLLATE "C" NOT NULL,
	raw_owner TEXT COLLATE "C" NOT NULL,
	source TEXT COLLATE "C" NOT NULL,
	monitor TEXT COLLATE "C" NOT NULL,
	owner TEXT COLLATE "C" NOT NULL,
	holder TEXT COLLATE "C" NOT NULL,
	waits BIGINT NOT NULL,
	timed BIGINT NOT NULL,
	total_ns BIGINT NOT NULL,
	max_ns BIGINT NOT NULL,
	PRIMARY KEY (project_id, trace_id, seq)
);

-- Builds with a new mapping: their traces after after_id are to be named again.
CREATE TABLE anr_rename (
	project_id TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	after_id TEXT COLLATE "C" NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, build_id)
);

-- Each day that anr_trace has rows of.
CREATE TABLE anr_day (
	project_id TEXT COLLATE "C" NOT NULL,
	day BIGINT NOT NULL,
	generation BIGINT NOT NULL DEFAULT 1,
	waiting BIGINT NOT NULL DEFAULT 1,
	PRIMARY KEY (project_id, day)
);
CREATE INDEX anr_day_waiting ON anr_day(project_id, day) WHERE waiting = 1;
CREATE INDEX anr_day_by_age ON anr_day(day);

-- Sums of ANR groups and of locks by day, so that a list reads one row per group and not one per
-- report.
-- Method names may be longer than an index entry, so the key has hashes of the texts.  decode()
-- makes the bytes because convert_to() is not allowed in a generated column.
CREATE TABLE anr_rollup (
	project_id TEXT COLLATE "C" NOT NULL,
	what BIGINT NOT NULL,
	fine BIGINT NOT NULL,
	day BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	device_class TEXT COLLATE "C" NOT NULL,
	os TEXT COLLATE "C" NOT NULL,
	generation BIGINT NOT NULL,
	data BYTEA NOT NULL,
	name_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(name, '\', '\\'), 'escape'))) STORED,
	dims_hash BYTEA NOT NULL GENERATED ALWAYS AS (sha256(decode(replace(app || chr(31) || version_name || chr(31)
		|| build_id || chr(31) || scenario || chr(31) || device_class || chr(31) || os, '\', '\\'), 'escape'))) STORED,
	PRIMARY KEY (project_id, what, fine, day, name_hash, dims_hash)
);

-- Notifications

-- Webhooks of a project.
CREATE TABLE webhook (
	project_id TEXT COLLATE "C" NOT NULL,
	hook_id TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	url TEXT COLLATE "C" NOT NULL,
	kind BIGINT NOT NULL,
	events BIGINT NOT NULL,
	secret TEXT COLLATE "C" NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	created_ms BIGINT NOT NULL,
	delivered_ms BIGINT NOT NULL DEFAULT 0,
	failing_ms BIGINT NOT NULL DEFAULT 0,
	fails BIGINT NOT NULL DEFAULT 0,
	hold_ms BIGINT NOT NULL DEFAULT 0,
	paused_ms BIGINT NOT NULL DEFAULT 0,
	paused_why TEXT COLLATE "C" NOT NULL DEFAULT '',
	PRIMARY KEY (project_id, hook_id)
);

-- Deliveries: one row per event and hook, written in the transaction of the event.
CREATE TABLE outbox (
	delivery_id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	project_id TEXT COLLATE "C" NOT NULL,
	hook_id TEXT COLLATE "C" NOT NULL,
	event_id TEXT COLLATE "C" NOT NULL,
	event BIGINT NOT NULL,
	facts TEXT COLLATE "C" NOT NULL,
	body TEXT COLLATE "C" NOT NULL DEFAULT '',
	created_ms BIGINT NOT NULL,
	due_ms BIGINT NOT NULL,
	until_ms BIGINT NOT NULL,
	tries BIGINT NOT NULL DEFAULT 0,
	tries_left BIGINT NOT NULL,
	state BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX outbox_once ON outbox(project_id, hook_id, event_id);
CREATE INDEX outbox_by_hook ON outbox(project_id, hook_id, delivery_id);
CREATE INDEX outbox_waiting ON outbox(project_id, hook_id, due_ms) WHERE state = 0;
CREATE INDEX outbox_tests ON outbox(project_id, hook_id) WHERE state = 0 AND event = 6;
CREATE INDEX outbox_until ON outbox(until_ms) WHERE state = 0;
CREATE INDEX outbox_by_age ON outbox(created_ms) WHERE state <> 0;
CREATE INDEX outbox_anrs ON outbox(project_id, created_ms) WHERE event = 4;

-- Attempts of a delivery.
CREATE TABLE outbox_try (
	delivery_id BIGINT NOT NULL,
	n BIGINT NOT NULL,
	at_ms BIGINT NOT NULL,
	took_ms BIGINT NOT NULL,
	http BIGINT NOT NULL,
	error TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (delivery_id, n)
);

-- Periods whose digest was made.
CREATE TABLE digest_made (
	project_id TEXT COLLATE "C" NOT NULL,
	until_ms BIGINT NOT NULL,
	since_ms BIGINT NOT NULL,
	made_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, until_ms)
);

-- Alert rules of a project.
CREATE TABLE alert_rule (
	project_id TEXT COLLATE "C" NOT NULL,
	rule_id TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	kind BIGINT NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	scenario TEXT COLLATE "C" NOT NULL,
	version_name TEXT COLLATE "C" NOT NULL,
	percentile BIGINT NOT NULL,
	limit_micro BIGINT NOT NULL,
	least BIGINT NOT NULL,
	days BIGINT NOT NULL,
	mail BIGINT NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, rule_id)
);

-- Figures that exceeded the limit of a rule.
CREATE TABLE alert (
	project_id TEXT COLLATE "C" NOT NULL,
	alert_id TEXT COLLATE "C" NOT NULL,
	rule_id TEXT COLLATE "C" NOT NULL,
	app TEXT COLLATE "C" NOT NULL,
	subject TEXT COLLATE "C" NOT NULL,
	title TEXT COLLATE "C" NOT NULL,
	trace_id TEXT COLLATE "C" NOT NULL,
	value_micro BIGINT NOT NULL,
	traces BIGINT NOT NULL,
	is_over BIGINT NOT NULL,
	notified BIGINT NOT NULL DEFAULT 0,
	notified_ms BIGINT NOT NULL DEFAULT 0,
	quiet BIGINT NOT NULL DEFAULT 0,
	status BIGINT NOT NULL,
	fixed_in TEXT COLLATE "C" NOT NULL DEFAULT '',
	owner TEXT COLLATE "C" NOT NULL DEFAULT '',
	note TEXT COLLATE "C" NOT NULL DEFAULT '',
	muted_until_ms BIGINT NOT NULL DEFAULT 0,
	first_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, alert_id)
);

-- Issues that were created in the project's issue tracker.
CREATE TABLE ticket (
	project_id TEXT COLLATE "C" NOT NULL,
	mark TEXT COLLATE "C" NOT NULL,
	kind BIGINT NOT NULL,
	subject_id TEXT COLLATE "C" NOT NULL,
	tracker TEXT COLLATE "C" NOT NULL,
	title TEXT COLLATE "C" NOT NULL,
	body TEXT COLLATE "C" NOT NULL,
	assignee TEXT COLLATE "C" NOT NULL,
	author TEXT COLLATE "C" NOT NULL,
	ticket_key TEXT COLLATE "C" NOT NULL DEFAULT '',
	url TEXT COLLATE "C" NOT NULL DEFAULT '',
	state BIGINT NOT NULL,
	error TEXT COLLATE "C" NOT NULL DEFAULT '',
	tries BIGINT NOT NULL DEFAULT 0,
	due_ms BIGINT NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	PRIMARY KEY (project_id, mark)
);
CREATE INDEX ticket_due ON ticket (due_ms);

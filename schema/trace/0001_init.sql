-- One decoded trace (application_id 'TWTR', user_version 3).  Written once, never changed.
-- Times are nanoseconds; *_ns of slices count from the trace's clock base (0).
-- Open it with `tracewell sql`, which shows slices as rows, or with sqlite3.  A database of up to
-- 256 KiB is stored compressed: `zstd -dc FILE > copy.db` first.

CREATE TABLE trace_meta ( -- format, decoder_version, input_bytes, decoded_bytes, pid, mono_base_ns,
                          -- boot_base_ns, start_ns, end_ns, slices, threads, methods, max_depth, has_cpu;
                          -- system (blob): what an export needs of the device's system trace
	key TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trace_thread (
	thread_id INTEGER PRIMARY KEY, -- 1.., main thread first, then by falling slice count
	pid INTEGER NOT NULL,
	tid INTEGER NOT NULL,
	name TEXT NOT NULL,            -- '' if no list names it
	is_main INTEGER NOT NULL,
	slices INTEGER NOT NULL,
	roots INTEGER NOT NULL,
	max_depth INTEGER NOT NULL,
	start_ns INTEGER NOT NULL,
	end_ns INTEGER NOT NULL,
	busy_ns INTEGER NOT NULL,      -- sum of the durations of its roots
	source TEXT NOT NULL,          -- calls: each recorded; samples: stacks at intervals; counts: no times
	interval_ns INTEGER NOT NULL   -- of samples; 0 unknown, -1 snapshots: durations are nominal
) STRICT;

CREATE TABLE trace_method ( -- the trace's own numbering, most frequent first
	method INTEGER PRIMARY KEY, -- index in the columns
	id INTEGER,                 -- named by the build's mapping; NULL: the trace has the name
	name TEXT,
	count INTEGER NOT NULL,
	total_ns INTEGER NOT NULL,  -- recursion counted once
	sum_ns INTEGER NOT NULL,    -- every call
	self_ns INTEGER NOT NULL,
	max_ns INTEGER NOT NULL,
	cpu_ns INTEGER NOT NULL     -- -1: not known
) STRICT;

CREATE TABLE trace_chunk ( -- slices as columns, zstd; layout in schema/columns.md
	chunk_id INTEGER PRIMARY KEY,
	thread_id INTEGER NOT NULL,
	level INTEGER NOT NULL,      -- 0: every slice; n: zoomed-out level n
	start_ns INTEGER NOT NULL,   -- begin of its first slice
	end_ns INTEGER NOT NULL,     -- latest end among its slices
	slices INTEGER NOT NULL,
	open INTEGER NOT NULL,       -- slices open where it begins
	min_dur_ns INTEGER NOT NULL, -- shorter ones are merged; 0 at level 0
	data BLOB NOT NULL
) STRICT;

CREATE TABLE trace_tree ( -- merged call tree of a thread, zstd; layout in schema/columns.md
	thread_id INTEGER PRIMARY KEY, -- 0: the summary tree, the heaviest nodes of all threads' trees
	nodes INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;

CREATE TABLE trace_note_block ( -- notes by time: counters, states, waits, marks (decoder/formats/notes.def)
	block_id INTEGER PRIMARY KEY, -- number of its first note, from 1
	last_id INTEGER NOT NULL,     -- and of its last
	start_ns INTEGER NOT NULL,    -- earliest begin
	end_ns INTEGER NOT NULL,      -- latest end
	sums BLOB NOT NULL,           -- by kind, thread and (of states and counters) text, as notes
	notes BLOB NOT NULL           -- as columns, zstd; layout in schema/columns.md
) STRICT;

CREATE TABLE trace_document ( -- results that are not events, as JSON: kind 'anr', ...
	document_id INTEGER PRIMARY KEY,
	kind TEXT NOT NULL,
	json TEXT NOT NULL
) STRICT;

CREATE TABLE trace_repair ( -- what was lost or repaired, by name (decoder/formats/repairs.def)
	name TEXT PRIMARY KEY,
	count INTEGER NOT NULL,
	first_offset INTEGER        -- in the decoded input; NULL: unknown
) STRICT, WITHOUT ROWID;

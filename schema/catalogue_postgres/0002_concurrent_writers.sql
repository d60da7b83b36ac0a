-- Schema 2, as schema/catalogue/0002_concurrent_writers.sql, which documents its tables.

-- Writers lock the rows that they change, and subjects (catalogue_writer.c).
DROP TABLE catalogue_writer;

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

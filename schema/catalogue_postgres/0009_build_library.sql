-- Schema 9, as schema/catalogue/0009_build_library.sql, which documents its table.

CREATE TABLE build_library (
	project_id TEXT COLLATE "C" NOT NULL,
	library TEXT COLLATE "C" NOT NULL,
	build_id TEXT COLLATE "C" NOT NULL,
	seen_day BIGINT NOT NULL,
	PRIMARY KEY (project_id, library, build_id)
);
CREATE INDEX build_library_by_age ON build_library(seen_day);

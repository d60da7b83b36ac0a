-- Schema 9: the native libraries of builds.

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

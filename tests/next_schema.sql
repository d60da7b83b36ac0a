-- The migration of tracewell-next, which has otherwise the schema of this version.
CREATE TABLE later(n INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO later VALUES(1);

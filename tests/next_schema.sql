-- The migration that tracewell-next adds to this version's schema.
CREATE TABLE later(n INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO later VALUES(1);

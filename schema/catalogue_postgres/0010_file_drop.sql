-- Schema 10, as schema/catalogue/0010_file_drop.sql, which documents it.
CREATE TABLE file_drop (
	key TEXT COLLATE "C" PRIMARY KEY,
	due_ms BIGINT NOT NULL,
	tries BIGINT NOT NULL
);
CREATE INDEX file_drop_due ON file_drop(due_ms);

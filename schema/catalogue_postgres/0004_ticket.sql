-- Schema 4, as schema/catalogue/0004_ticket.sql, which documents its table.

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

-- Schema 4: issues that were created in a project's issue tracker.

CREATE TABLE ticket (
	project_id TEXT NOT NULL,
	mark TEXT NOT NULL,          -- identifies its subject, and is part of the issue's text
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
	tries INTEGER NOT NULL DEFAULT 0,
	due_ms INTEGER NOT NULL,     -- next request; 0 none
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL, -- last change or check of its state
	PRIMARY KEY (project_id, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_due ON ticket (due_ms);

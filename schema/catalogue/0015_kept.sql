-- Why retention leaves a trace alone, for its value: a word such as exemplar; '' for no reason.
ALTER TABLE trace ADD COLUMN kept_for TEXT NOT NULL DEFAULT '';

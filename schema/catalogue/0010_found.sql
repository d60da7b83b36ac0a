-- Parts that nobody sent by themselves: the decoder found them in the trace's archive (user_version 10).

ALTER TABLE part ADD COLUMN found INTEGER NOT NULL DEFAULT 0;

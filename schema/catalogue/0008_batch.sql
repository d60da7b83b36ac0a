-- The number of the transaction in which a trace came in; higher is later, 0 is before there were numbers.
-- Only of the highest can files lack what the catalogue says: the next one waits until they are durable.
ALTER TABLE job ADD COLUMN batch INTEGER NOT NULL DEFAULT 0;

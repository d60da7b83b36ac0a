-- Schema 11, as schema/catalogue/0011_anr_names.sql, which documents it.
ALTER TABLE hang RENAME TO anr_trace;
ALTER TABLE anr_trace RENAME COLUMN tallied TO rollup_generation;
ALTER TABLE hang_rename RENAME TO anr_rename;
ALTER TABLE hang_day RENAME TO anr_day;
ALTER TABLE hang_tally RENAME TO anr_rollup;
ALTER INDEX hang_by_age RENAME TO anr_trace_by_age;
ALTER INDEX hang_by_build RENAME TO anr_trace_by_build;
ALTER INDEX hang_by_mapping RENAME TO anr_trace_by_mapping;
ALTER INDEX hang_keyed RENAME TO anr_trace_by_rules;
ALTER INDEX hang_unnamed RENAME TO anr_trace_unnamed;
ALTER INDEX hang_anr_of_day RENAME TO anr_trace_of_day_and_key;
ALTER INDEX hang_anr_of_key RENAME TO anr_trace_of_key;
ALTER INDEX hang_of_day RENAME TO anr_trace_of_day;
ALTER INDEX hang_tallied RENAME TO anr_trace_by_rollup;
ALTER INDEX hang_uncopied RENAME TO anr_trace_uncopied;
ALTER INDEX hang_day_waiting RENAME TO anr_day_waiting;
ALTER INDEX hang_day_by_age RENAME TO anr_day_by_age;

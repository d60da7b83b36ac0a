#include "server/catalogue/catalogue_tables.h"

/* Rows per read: few for tables with large bytes. */
enum { MANY = 1000, FEW = 32 };

static const struct tw_table tables[] = {
        {"project", 1, MANY, "project_id name created_ms:i"},
        {"user", 1, MANY,
                "user_id name password is_admin:i created_ms:i last_seen_ms:i is_disabled:i"},
        {"api_key", 2, MANY,
                "project_id key_id name scope:i hash:b created_ms:i last_seen_ms:i "
                "revoked_ms:i expires_ms:i seen_from rotated_ms:i old_hash:b? "
                "old_until_ms:i old_seen_ms:i"},
        {"signin_link", 1, MANY, "hash:b expires_ms:i"},
        {"session", 1, MANY,
                "hash:b user_id? project_id? key_id? created_ms:i seen_ms:i idle_ms:i "
                "expires_ms:i"},
        {"build", 2, MANY,
                "project_id build_id map_sha256 source_sha256 map_version entries:i "
                "malformed:i duplicates:i created_ms:i updated_ms:i traces:i app "
                "version_name retrace_sha256 retrace_source_sha256 retrace_id "
                "retrace_classes:i retrace_methods:i retrace_malformed:i retrace_ms:i "
                "names_traces:i names_lacking:i names_ids:i names_resolved:i names_slices:i "
                "names_resolved_slices:i commit_id commit_set:i first_malformed:i "
                "retrace_first_malformed:i"},
        {"mapping_job", 2, MANY,
                "project_id job_id build_id kind:i source_sha256 may_replace:i claimed:i "
                "due_ms:i tries:i owner queued_ms:i bytes:i error_status error_message "
                "error_offset:i"},
        {"trace", 2, MANY,
                "project_id trace_id key_id idempotency_key content state:i created_ms:i "
                "ready_ms:i tries:i upload_bytes:i app version_name version_code build_id "
                "mapping_id device os abi process scenario session_id uuid labels pid:i "
                "started_ms:i recorded_ms:i format decoder_version:i slices:i threads:i methods:i "
                "max_depth:i duration_ns:i input_bytes:i decoded_bytes:i file_bytes:i "
                "losses:i repairs:i error_status error_message error_offset:i named:i "
                "names_ids:i names_resolved:i names_slices:i names_resolved_slices:i "
                "file_sha256 title pinned:i annotations:i upload_kept:i kept_for rollup_state:i "
                "anr_state:i install:i anr detected:i once:i"},
        {"part", 3, MANY, "project_id trace_id part sha256 format bytes:i found:i"},
        {"job", 2, MANY,
                "project_id trace_id claimed:i due_ms:i tries:i owner queued_ms:i batch:i "
                "bytes:i"},
        {"recount", 2, MANY, "project_id build_id after_id"},
        {"project_setting", 2, MANY, "project_id key value updated_ms:i"},
        {"trace_tag", 3, MANY, "project_id trace_id tag"},
        {"annotation", 3, MANY,
                "project_id trace_id annotation_id author text created_ms:i edited_ms:i "
                "ts_ns:i dur_ns:i tid:i method_index:i method_key"},
        {"saved_filter", 2, MANY, "project_id name query author updated_ms:i"},
        {"member", 2, MANY, "user_id project_id scope:i"},
        {"quarantine", 2, MANY,
                "project_id trace_id reason signal:i format decoder_version:i first_ms:i "
                "last_ms:i deaths:i"},
        {"audit", 1, MANY,
                "entry_id:i at_ms:i project_id by_kind by_id by_name address request_id "
                "action target facts"},
        {"capture_day", 3, MANY, "project_id rule day:i traces:i devices:i"},
        {"capture_device", 4, MANY, "day:i project_id rule device:i"},
        {"count_delta", 6, MANY, "project_id counter:i name day:i trace_id traces:i devices:i"},
        {"rollup_cell", 2, FEW,
                "project_id cell_id:i day:i app version_name build_id mapping_id scenario "
                "device_class os label traces:i pending:i version:i head:b tries:i "
                "again_ms:i"},
        {"rollup_part", 3, FEW, "project_id cell_id:i metric:i data:b"},
        {"rollup_delta", 3, FEW, "project_id cell_id:i trace_id duration_ns:i data:b"},
        {"rollup_method", 2, MANY,
                "project_id method_id:i build_id mapping_id raw name descriptor named:i "
                "seen_day:i"},
        {"rollup_rename", 2, MANY, "project_id build_id after_id:i generation:i"},
        {"build_library", 3, MANY, "project_id library build_id seen_day:i"},
        {"identity", 2, MANY, "issuer subject user_id created_ms:i"},
        {"postponed", 3, MANY, "project_id trace_id stage tries:i again_ms:i waits:i reason"},
        {"rollup_tree", 2, FEW, "project_id cell_id:i day:i pending:i version:i data:b levels:b"},
        {"rollup_tree_delta", 3, FEW, "project_id cell_id:i trace_id data:b"},
        {"regression", 2, MANY,
                "project_id regression_id app scenario method descriptor base head day:i "
                "percent:i before_ns:i after_ns:i change_ppm:i low_ppm:i high_ppm:i "
                "score_milli:i n_before:i n_after:i before_trace after_trace status:i "
                "fixed_in fixed_day:i earlier owner note muted_until_ms:i first_ms:i "
                "last_ms:i kind:i share_ppm:i"},
        {"rollup_post", 4, FEW, "project_id cell_id:i slot:i pack:i data:b"},
        {"anr_trace", 2, MANY,
                "project_id trace_id recorded_ms:i day:i app version_name build_id "
                "mapping_id scenario device device_class os labels who:i anr:i keyed:i key "
                "kind rollup_generation:i copied:i"},
        {"anr", 2, FEW, "project_id trace_id brief:b base key kind name title verdict detail"},
        {"lock_wait", 3, MANY,
                "project_id trace_id seq:i dump:i is_main:i raw_monitor raw_owner source "
                "monitor owner holder waits:i timed:i total_ns:i max_ns:i"},
        {"anr_state", 2, MANY,
                "project_id key status:i fixed_in fixed_ms:i owner note muted_until_ms:i "
                "author changed_ms:i"},
        {"anr_rename", 2, MANY, "project_id build_id after_id"},
        {"webhook", 2, MANY,
                "project_id hook_id name url kind:i events:i secret author created_ms:i "
                "delivered_ms:i failing_ms:i fails:i hold_ms:i paused_ms:i paused_why"},
        {"rollup_tree_later", 2, MANY, "project_id cell_id:i tries:i again_ms:i"},
        {"ruleset", 3, MANY, "project_id kind version:i value author created_ms:i"},
        {"outbox", 1, MANY,
                "delivery_id:i project_id hook_id event_id event:i facts body created_ms:i "
                "due_ms:i until_ms:i tries:i tries_left:i state:i"},
        {"outbox_try", 2, MANY, "delivery_id:i n:i at_ms:i took_ms:i http:i error"},
        {"regression_history", 3, MANY,
                "project_id regression_id n:i at_ms:i author event:i status:i version"},
        {"digest_made", 2, MANY, "project_id until_ms:i since_ms:i made_ms:i"},
        {"rollup_tree_rough", 2, FEW, "project_id cell_id:i data:b"},
        {"anr_day", 2, MANY, "project_id day:i generation:i waiting:i"},
        {"anr_rollup", 11, MANY,
                "project_id what:i fine:i day:i name app version_name build_id scenario "
                "device_class os generation:i data:b"},
        {"rollup_wide", 6, MANY,
                "project_id day:i app version_name build_id mapping_id due:i sign:i"},
        {"rollup_wide_part", 7, FEW,
                "project_id day:i app version_name build_id mapping_id metric:i data:b"},
        {"finding", 3, FEW, "project_id cell_id:i trace_id data:b"},
        {"alert_rule", 2, MANY,
                "project_id rule_id name kind:i app scenario version_name percentile:i "
                "limit_micro:i least:i days:i mail:i author created_ms:i changed_ms:i"},
        {"alert", 2, MANY,
                "project_id alert_id rule_id app subject title trace_id value_micro:i traces:i "
                "is_over:i notified:i notified_ms:i quiet:i status:i fixed_in owner note "
                "muted_until_ms:i first_ms:i last_ms:i"},
        {"ticket", 2, MANY,
                "project_id mark kind:i subject_id tracker title body assignee author "
                "ticket_key url state:i error tries:i due_ms:i created_ms:i changed_ms:i"},
        {"fleet_engine", 1, MANY, "name"},
        {"fleet_erase", 2, MANY, "project_id trace_id day:i hidden:i"},
};

const struct tw_table *tw_tables(size_t *ret_n)
{
	*ret_n = sizeof tables / sizeof *tables;
	return tables;
}

static struct tw_column column_of(struct tw_str word)
{
	struct tw_column c = {.may_be_null = word.len && word.ptr[word.len - 1] == '?'};

	word.len -= c.may_be_null;
	c.name = tw_str_split(&word, ':');
	if (word.len)
		c.kind = *word.ptr == 'i' ? TW_COLUMN_INT : TW_COLUMN_BYTES;
	return c;
}

void tw_table_columns(const struct tw_table *t, struct tw_columns *ret)
{
	struct tw_str rest = tw_str_of(t->columns);

	ret->n = 0;
	while (rest.len && ret->n < TW_COLUMNS_MAX)
		ret->of[ret->n++] = column_of(tw_str_split(&rest, ' '));
}

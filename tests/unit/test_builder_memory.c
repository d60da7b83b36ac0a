/* The builder when memory runs out: every allocation in turn fails, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "../trace_model.h"
#include <cmocka.h>

static enum tw_status drop_chunk(struct tw_trace_out *out, const struct tw_chunk_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	(void)out, (void)info, (void)payload, (void)len, (void)err;
	return TW_OK;
}

static enum tw_status drop_tree(struct tw_trace_out *out, uint32_t thread_id, uint32_t nodes,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	(void)out, (void)thread_id, (void)nodes, (void)payload, (void)len, (void)err;
	return TW_OK;
}

static enum tw_status drop_thread(
        struct tw_trace_out *out, const struct tw_thread_info *t, struct tw_err *err)
{
	(void)out, (void)t, (void)err;
	return TW_OK;
}

static enum tw_status drop_method(
        struct tw_trace_out *out, const struct tw_method_info *m, struct tw_err *err)
{
	(void)out, (void)m, (void)err;
	return TW_OK;
}

static enum tw_status drop_note(
        struct tw_trace_out *o, const struct tw_note_row *n, struct tw_err *err)
{
	(void)o, (void)n, (void)err;
	return TW_OK;
}

static enum tw_status drop_document(
        struct tw_trace_out *o, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)o, (void)kind, (void)json, (void)err;
	return TW_OK;
}

static enum tw_status drop_repair(
        struct tw_trace_out *out, const struct tw_repair_count *r, struct tw_err *err)
{
	(void)out, (void)r, (void)err;
	return TW_OK;
}

static enum tw_status drop_info(
        struct tw_trace_out *out, const struct tw_trace_info *info, struct tw_err *err)
{
	(void)out, (void)info, (void)err;
	return TW_OK;
}

static enum tw_status build_dropping(const struct model *m, enum model_form form)
{
	static const struct tw_trace_out_ops ops = {drop_chunk, drop_tree, drop_thread, drop_method,
	        drop_note, drop_document, drop_repair, drop_info};
	struct tw_trace_out out = {&ops};
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	enum tw_status st = b ? model_tell(m, tw_builder_sink(b), form, NULL) : TW_NOMEM;

	if (st == TW_OK) {
		tw_builder_sink(b)->ops->thread_name(tw_builder_sink(b), 0, 5, TW_STR("t"));
		st = tw_builder_write(b, &out, NULL);
	}
	tw_builder_free(b);
	return st;
}

static void test_no_memory(void **state)
{
	struct model_shape shape = {99, 2, 300, 20, true};
	struct model m;

	(void)state;
	model_make(&m, &shape);
	for (int form = MODEL_RECORDS; form <= MODEL_SHUFFLED; form++) {
		bool done = false;

		for (uint64_t n = 1; !done; n++) {
			enum tw_status st;

			tw_mem_fail_at(n);
			st = build_dropping(&m, (enum model_form)form);
			done = tw_mem_count() < n;
			tw_mem_fail_at(0);
			assert_int_equal(st, done ? TW_OK : TW_NOMEM);
			assert_in_range(n, 1, 1000);
		}
	}
	model_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The real Profilo log gives the stacks that its folded file has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/unzip.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

struct plain { /* a sample as read by this test's own few lines */
	int64_t ts, tid;
	int64_t frames[64];
	size_t n;
};

static struct plain *samples;
static size_t n_samples;

static void read_plain(char *log)
{
	int64_t now[6] = {0};
	char *save = NULL;

	n_samples = 0;
	for (char *line = strtok_r(strstr(log, "\n\n"), "\n", &save); line;
	        line = strtok_r(NULL, "\n", &save)) {
		char type[32];
		int64_t by[6];

		if (sscanf(line, /* NOLINT */
		            "%" SCNd64 "|%31[A-Z_]|%" SCNd64 "|%" SCNd64 "|%" SCNd64 "|%" SCNd64
		            "|%" SCNd64,
		            &by[0], type, &by[1], &by[2], &by[3], &by[4], &by[5]) != 7)
			continue;
		for (int i = 0; i < 6; i++)
			now[i] = (int64_t)((uint64_t)now[i] + (uint64_t)by[i]);
		if (strcmp(type, "STACK_FRAME") != 0)
			continue;
		if (n_samples == 0 || samples[n_samples - 1].ts != now[1] ||
		        samples[n_samples - 1].tid != now[2])
			samples[n_samples++] = (struct plain){.ts = now[1], .tid = now[2]};
		samples[n_samples - 1].frames[samples[n_samples - 1].n++] = now[5];
	}
}

/* What of the log's events is open on the sample's thread at its time. */
static size_t open_at(const struct event_log *log, const struct plain *s, uint32_t open[64])
{
	int64_t ts_ns = s->ts * 1000 - log->clock.mono_base_ns;
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct tw_event *e = &log->events[i];

		if (e->track != (uint32_t)s->tid + 1 || e->ts_ns > ts_ns)
			continue;
		if (e->kind == TW_EV_BEGIN)
			open[n++] = e->sym;
		else if (e->kind == TW_EV_END)
			assert_int_equal(open[--n], e->sym);
	}
	return n;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_id(const char *folded, int64_t id)
{
	char word[32];

	(void)snprintf(word, sizeof word, "_%" PRId64, id);
	return strstr(folded, word) != NULL;
}

/* Names are not in the log: where stacks.folded has one there is "*" here and there. */
static char *folded_of(const struct plain *s, const char *folded)
{
	char *line = calloc(1, 2048);
	size_t len = 0;

	for (size_t i = 0; i < s->n; i++)
		len += has_id(folded, s->frames[i])
		               ? (size_t)snprintf(
		                         line + len, 2048 - len, "_%" PRId64 ";", s->frames[i])
		               : (size_t)snprintf(line + len, 2048 - len, "*;");
	return line;
}

static size_t read_folded(char *folded, char **lines)
{
	char *save = NULL;
	size_t n = 0;

	for (char *l = strtok_r(folded, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *count = strrchr(l, ' ');
		char *line = calloc(1, 2048);
		char *inner = NULL;
		size_t len = 0;

		*count++ = 0;
		for (char *f = strtok_r(l, ";", &inner); f; f = strtok_r(NULL, ";", &inner))
			len += (size_t)snprintf(
			        line + len, 2048 - len, "%s;", f[0] == '_' ? f : "*");
		for (int i = atoi(count); i > 0; i--) /* NOLINT */
			lines[n++] = strdup(line);
		free(line);
	}
	return n;
}

static enum tw_status to_buf(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

static void read_sample(const char *name, struct tw_buf *b)
{
	FILE *f = fopen(unit_sample(name), "re");
	struct tw_limits l = tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	enum tw_unzip_end end;
	struct tw_unzip *z;
	char piece[4096];
	size_t n;

	assert_non_null(f);
	tw_buf_init(b, 64 << 20);
	z = tw_unzip_new(a, &l, to_buf, b);
	while ((n = fread(piece, 1, sizeof piece, f)) > 0)
		assert_int_equal(tw_unzip_push(z, (const uint8_t *)piece, n, NULL), TW_OK);
	assert_int_equal(tw_unzip_finish(z, &end, NULL), TW_OK);
	assert_int_equal(fclose(f), 0);
	tw_unzip_free(z);
	tw_arena_free(a);
	(void)tw_buf_add_u8(b, 0);
}

/* The events contain every sample of the log, and their stacks equal stacks.folded. */
static void compare(struct event_log *log, char *text_of_log, char *folded)
{
	char **got = calloc(4096, sizeof *got);
	char **want = calloc(4096, sizeof *want);
	uint32_t open[64];

	read_plain(text_of_log);
	assert_int_equal(n_samples, 524);
	for (size_t i = 0; i < n_samples; i++) {
		assert_int_equal(open_at(log, &samples[i], open), samples[i].n);
		for (size_t k = 0; k < samples[i].n; k++)
			assert_int_equal(open[k], event_log_method((uint64_t)samples[i].frames[k]));
		got[i] = folded_of(&samples[i], folded);
	}
	assert_int_equal(read_folded(folded, want), n_samples);
	qsort(got, n_samples, sizeof *got, by_text);
	qsort(want, n_samples, sizeof *want, by_text);
	for (size_t i = 0; i < n_samples; i++) {
		assert_string_equal(got[i], want[i]);
		free(got[i]);
		free(want[i]);
	}
	free(got);
	free(want);
}

static size_t count_words(const char *text_of, const char *word)
{
	size_t n = 0;

	for (const char *at = strstr(text_of, word); at; at = strstr(at + 1, word))
		n++;
	return n;
}

static void test_real_log(void **state)
{
	struct tw_buf raw, folded;
	struct event_log log;
	size_t slices = 0;

	(void)state;
	read_sample("profilo/override-main-23725-2018-1-16T12-52-49-GeHZavrJSAb.log", &raw);
	read_sample("profilo/stacks.folded", &folded);
	samples = calloc(4096, sizeof *samples);
	event_log_run(&log, raw.data, raw.len - 1, 0, NULL);
	assert_int_equal(log.status, TW_OK);
	for (size_t i = 0; i < log.n; i++)
		slices += log.events[i].kind == TW_EV_SLICE;
	assert_int_equal(slices + count_words(event_log_text(&log), "note section "), 10302);
	assert_int_equal(count_words(event_log_text(&log), "note counter "), 23645);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 0);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 0);
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 0);
	compare(&log, (char *)raw.data, (char *)folded.data);
	free(samples);
	event_log_done(&log);
	tw_buf_done(&raw);
	tw_buf_done(&folded);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_log),
};

UNIT_TESTS("profilo_log", tests)

#include "decoder/formats/anr/anr_model.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/native_frame.h"

enum { FIRST_CAP = 64, MODULE_BYTES = 200, NATIVE_NAME_BYTES = 300 };

/* Makes space for one more in *list; false if memory is short. */
static bool grow(struct tw_anr *m, void **list, uint32_t n, uint32_t *cap, size_t size)
{
	const bool grown =
	        tw_list_reserve(m->arena, list, n, n + (size_t)1, cap, size, TW_LIST_FIRST);

	m->no_memory = m->no_memory || !grown;
	return grown;
}

static bool full(struct tw_anr *m, enum tw_repair what, uint64_t offset)
{
	m->sink->ops->repair(m->sink, what, offset, 1);
	return false;
}

/* --- texts --- */

static bool is_plain(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || (unsigned char)s.ptr[i] > 0x7E)
			return false;
	return true;
}

bool tw_anr_init(
        struct tw_anr *m, struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink)
{
	*m = (struct tw_anr){.arena = a, .sink = sink, .limits = *limits};
	m->scratch = tw_arena_alloc(a, limits->max_name_bytes + 1, 1);
	m->n_slots = 4 * FIRST_CAP;
	m->slots = tw_arena_zalloc(a, m->n_slots, sizeof *m->slots);
	if (!m->scratch || !m->slots ||
	        !grow(m, (void **)&m->texts, 0, &m->cap_texts, sizeof *m->texts))
		return false;
	m->texts[m->n_texts++] = (struct tw_anr_text){"", 0};
	return true;
}

struct tw_str tw_anr_str(const struct tw_anr *m, uint32_t text)
{
	return (struct tw_str){m->texts[text].ptr, m->texts[text].len};
}

/* The slot of s, or a free one. */
static uint32_t *slot_of(const struct tw_anr *m, struct tw_str s)
{
	uint32_t at = (uint32_t)tw_hash_str(s, m->limits.hash_salt) & (m->n_slots - 1);

	while (m->slots[at] && !tw_str_eq(tw_anr_str(m, m->slots[at]), s))
		at = (at + 1) & (m->n_slots - 1);
	return &m->slots[at];
}

static bool widen_slots(struct tw_anr *m)
{
	uint32_t *slots;

	if (m->n_texts < m->n_slots / 2)
		return true;
	slots = tw_arena_zalloc(m->arena, m->n_slots, 2 * sizeof *slots);
	if (!slots) {
		m->no_memory = true;
		return false;
	}
	m->slots = slots;
	m->n_slots *= 2;
	for (uint32_t i = 1; i < m->n_texts; i++)
		*slot_of(m, tw_anr_str(m, i)) = i;
	return true;
}

static uint32_t new_text(struct tw_anr *m, struct tw_str s)
{
	char *copy;

	if (!grow(m, (void **)&m->texts, m->n_texts, &m->cap_texts, sizeof *m->texts))
		return 0;
	copy = tw_arena_str(m->arena, s);
	if (!copy) {
		m->no_memory = true;
		return 0;
	}
	m->text_bytes += s.len;
	m->texts[m->n_texts] = (struct tw_anr_text){copy, (uint32_t)s.len};
	return m->n_texts++;
}

/* Valid UTF-8 without control characters. */
static struct tw_str cleaned(struct tw_anr *m, struct tw_str s)
{
	size_t n = tw_utf8_clean(m->scratch, m->limits.max_name_bytes + 1, s);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)m->scratch[i] < 0x20)
			m->scratch[i] = ' ';
	return (struct tw_str){m->scratch, n};
}

uint32_t tw_anr_text(struct tw_anr *m, struct tw_str s, uint64_t offset)
{
	uint32_t *slot;

	if (s.len > m->limits.max_name_bytes) {
		m->sink->ops->repair(m->sink, TW_REPAIR_name_cut, offset, 1);
		s.len = m->limits.max_name_bytes;
	}
	if (s.len && !is_plain(s))
		s = cleaned(m, s);
	if (s.len == 0 || !widen_slots(m))
		return 0;
	slot = slot_of(m, s);
	if (*slot)
		return *slot;
	if (m->n_texts >= TW_ANR_MAX_TEXTS || m->text_bytes + s.len > TW_ANR_MAX_TEXT_BYTES) {
		m->sink->ops->repair(m->sink, TW_REPAIR_name_limit, offset, 1);
		return 0;
	}
	return *slot = new_text(m, s);
}

/* --- dumps, threads, frames, locks --- */

bool tw_anr_add_dump(struct tw_anr *m, uint64_t pid, int64_t at_ns, uint64_t offset)
{
	if (m->n_dumps >= TW_ANR_MAX_DUMPS)
		return full(m, TW_REPAIR_note_limit, offset);
	if (!grow(m, (void **)&m->dumps, m->n_dumps, &m->cap_dumps, sizeof *m->dumps))
		return false;
	m->dumps[m->n_dumps++] = (struct tw_anr_dump){
	        .pid = pid, .at_ns = at_ns, .offset = offset, .thread = m->n_threads};
	return true;
}

bool tw_anr_add_thread(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset)
{
	struct tw_anr_dump *d = &m->dumps[m->n_dumps - 1];

	if (d->n_threads >= m->limits.max_threads || m->n_threads >= TW_ANR_MAX_THREADS) {
		d->threads_left_out++;
		return full(m, TW_REPAIR_thread_limit, offset);
	}
	if (!grow(m, (void **)&m->threads, m->n_threads, &m->cap_threads, sizeof *m->threads))
		return false;
	m->threads[m->n_threads] = (struct tw_anr_thread){
	        .name = tw_anr_text(m, l->name, offset),
	        .state = tw_anr_text(m, l->text, offset),
	        .tid = l->tid,
	        .sys_tid = l->sys_tid,
	        .priority = l->priority,
	        .daemon = l->daemon,
	        .attached = l->attached,
	        .starting = l->starting,
	        .offset = offset,
	        .frame = m->n_frames,
	        .lock = m->n_locks,
	};
	m->n_threads++;
	d->n_threads++;
	return true;
}

static uint32_t frame_name(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset)
{
	char name[NATIVE_NAME_BYTES];
	int n;

	if (l->name.len || l->kind != TW_ANR_NATIVE)
		return tw_anr_text(m, l->name, offset);
	n = snprintf(name, sizeof name, "%.*s+0x%llx",
	        (int)(l->text.len < MODULE_BYTES ? l->text.len : MODULE_BYTES),
	        l->text.len ? l->text.ptr : "", (unsigned long long)l->number);
	return tw_anr_text(m, (struct tw_str){name, n > 0 ? (size_t)n : 0}, offset);
}

/* Symbols that arrive later name a frame without a function (native_frame.h). */
static uint32_t frame_build_id(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset)
{
	char id[TW_BUILD_ID_HEX];

	if (l->kind != TW_ANR_NATIVE || l->name.len || !tw_build_id_clean(l->build_id, id))
		return 0;
	return tw_anr_text(m, tw_str_of(id), offset);
}

static bool reserve_frame(struct tw_anr *m, uint64_t offset)
{
	struct tw_anr_thread *t = &m->threads[m->n_threads - 1];

	if (t->n_frames >= m->limits.max_depth || m->n_frames >= TW_ANR_MAX_FRAMES) {
		t->frames_left_out++;
		return full(m, TW_REPAIR_depth_clipped, offset);
	}
	return grow(m, (void **)&m->frames, m->n_frames, &m->cap_frames, sizeof *m->frames);
}

bool tw_anr_add_frame(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset)
{
	if (!reserve_frame(m, offset))
		return false;
	m->frames[m->n_frames++] = (struct tw_anr_frame){
	        .name = frame_name(m, l, offset),
	        .where = tw_anr_text(m, l->text, offset),
	        .build_id = frame_build_id(m, l, offset),
	        .kind = l->kind == TW_ANR_NATIVE   ? TW_ANR_C
	                : l->kind == TW_ANR_KERNEL ? TW_ANR_IN_KERNEL
	                                           : TW_ANR_JAVA,
	};
	m->threads[m->n_threads - 1].n_frames++;
	return true;
}

bool tw_anr_repeat_frame(struct tw_anr *m, uint64_t n, uint64_t offset)
{
	for (uint64_t i = 0; i < n; i++) {
		if (!reserve_frame(m, offset))
			return false;
		m->frames[m->n_frames] = m->frames[m->n_frames - 1];
		m->n_frames++;
		m->threads[m->n_threads - 1].n_frames++;
	}
	return true;
}

bool tw_anr_add_lock(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset)
{
	struct tw_anr_thread *t = &m->threads[m->n_threads - 1];

	if (m->n_locks >= TW_ANR_MAX_LOCKS)
		return full(m, TW_REPAIR_note_limit, offset);
	if (!grow(m, (void **)&m->locks, m->n_locks, &m->cap_locks, sizeof *m->locks))
		return false;
	m->locks[m->n_locks++] = (struct tw_anr_lock){
	        .object = l->object,
	        .holder = l->holder,
	        .thread = m->n_threads - 1 - m->dumps[m->n_dumps - 1].thread,
	        .type = tw_anr_text(m, l->text, offset),
	        .frame = m->n_frames - 1,
	        .how = l->how,
	};
	t->n_locks++;
	return true;
}

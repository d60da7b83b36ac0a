/*
 * builder_spill.c - moves records to scratch once those in memory exceed its window.
 *
 * A track whose array is then full writes it to the end of scratch as an extent.  After that, the
 * track writes its records whenever it has a piece of them, which is 1/64 of the window.  Records
 * are read back in pieces; builder_nest.c moves them to pre-order in place, as it does in memory.
 * Tracks that must be sorted are read back into memory.  Calls that do not fit a record stay in
 * memory (records.wide, records.long_cpu_ns).
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

/* An array smaller than 1/16 of a piece (64 KiB with the usual window) grows instead of being
 * written, so that writes are not tiny. */
enum { PIECES = 64, LEAST_SHARE = 16, CPU_AT_ONCE = 512 };

uint64_t tw_piece_records(const struct tw_builder *b)
{
	uint64_t n = b->scratch.window_bytes / PIECES / sizeof(struct record);

	return n ? n : 1;
}

bool tw_builder_must_spill(const struct tw_builder *b, const struct track *t, uint64_t more)
{
	const uint64_t size = tw_track_record_bytes(t);
	const uint64_t n = t->n - t->n_spilled;
	const bool full = b->record_bytes + more * size > b->scratch.window_bytes;
	const uint64_t depths =
	        (b->scratch_bytes + n * size + b->record_bytes + tw_builder_left_for_records(b)) /
	        (sizeof(struct record) / sizeof(uint16_t));

	return n && n >= (full ? tw_piece_records(b) / LEAST_SHARE : tw_piece_records(b)) &&
	       (full || t->spilled) && b->scratch_bytes + n * size + depths <= b->scratch.max_bytes;
}

static bool reserve_extent(struct tw_builder *b, struct track *t)
{
	if (!t->spilled)
		t->spilled = tw_mem_zalloc(1, sizeof *t->spilled);
	if (t->spilled && TW_GROW_MEM(t->spilled->extents, t->spilled->n, t->spilled->cap))
		return true;
	b->status = TW_NOMEM;
	return false;
}

static bool append(struct tw_builder *b, const void *p, uint64_t bytes)
{
	b->status = b->scratch.write(b->scratch.arg, b->scratch_bytes, p, bytes, &b->why);
	if (b->status == TW_OK)
		b->scratch_bytes += bytes;
	return b->status == TW_OK;
}

bool tw_builder_spill(struct tw_builder *b, struct track *t)
{
	const uint64_t n = t->n - t->n_spilled;
	const struct extent e = {b->scratch_bytes, t->n_spilled,
	        t->records.cpu ? b->scratch_bytes + n * sizeof *t->records.at : 0, (uint32_t)n};

	if (!reserve_extent(b, t) || !append(b, t->records.at, n * sizeof *t->records.at) ||
	        (t->records.cpu && !append(b, t->records.cpu, n * sizeof *t->records.cpu)))
		return false;
	t->spilled->extents[t->spilled->n++] = e;
	t->n_spilled = t->n;
	t->cap += n;
	/* later records are written while they are in the processor's cache */
	return n <= tw_piece_records(b) ||
	       tw_builder_resize_records(b, t, t->n + tw_piece_records(b));
}

void tw_spilled_free(struct track *t)
{
	if (t->spilled)
		tw_mem_free(t->spilled->extents);
	tw_mem_free(t->spilled);
	t->spilled = NULL;
	t->n_spilled = 0;
}

/* --- reading --- */

/* The extent that contains record `number`. */
static const struct extent *extent_of(const struct spilled *s, uint64_t number)
{
	uint32_t low = 0;
	uint32_t high = s->n;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (s->extents[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	return &s->extents[low];
}

struct access { /* a read or write of records in scratch */
	const struct tw_builder *builder;
	struct record *at;
	uint32_t *cpu; /* NULL: the track has no CPU times */
	bool writes;
	struct tw_err *err;
};

static enum tw_status transfer(const struct access *a, uint64_t at, void *p, uint64_t bytes)
{
	const struct tw_scratch *s = &a->builder->scratch;

	return a->writes ? s->write(s->arg, at, p, bytes, a->err)
	                 : s->read(s->arg, at, p, bytes, a->err);
}

/* Reads or writes n records of an extent, after its first `skip`, at a->at[done]. */
static enum tw_status access_extent(
        const struct access *a, const struct extent *e, uint64_t skip, uint64_t n, uint64_t done)
{
	uint32_t *cpu = a->cpu ? a->cpu + done : NULL;
	enum tw_status st =
	        transfer(a, e->at + skip * sizeof *a->at, a->at + done, n * sizeof *a->at);

	if (st != TW_OK || !cpu)
		return st;
	if (e->cpu_at)
		return transfer(a, e->cpu_at + skip * sizeof *cpu, cpu, n * sizeof *cpu);
	for (uint64_t i = 0; !a->writes && i < n; i++)
		cpu[i] = TW_CPU_NONE;
	return TW_OK;
}

/* The same of records in memory. */
static void access_memory(
        const struct access *a, const struct track *t, uint64_t first, uint64_t n, uint64_t done)
{
	struct record *at = t->records.at + (first - t->n_spilled);
	uint32_t *cpu = t->records.cpu ? t->records.cpu + (first - t->n_spilled) : NULL;

	memcpy(a->writes ? at : a->at + done, a->writes ? a->at + done : at, n * sizeof *at);
	if (cpu && a->cpu)
		memcpy(a->writes ? cpu : a->cpu + done, a->writes ? a->cpu + done : cpu,
		        n * sizeof *cpu);
}

/* Reads or writes n records from number `first` on. */
static enum tw_status access_records(
        const struct access *a, const struct track *t, uint64_t first, uint64_t n)
{
	enum tw_status st = TW_OK;
	uint64_t done = 0;

	while (st == TW_OK && done < n && first + done < t->n_spilled) {
		const struct extent *e = extent_of(t->spilled, first + done);
		const uint64_t skip = first + done - e->first;
		const uint64_t some = e->n - skip < n - done ? e->n - skip : n - done;

		st = access_extent(a, e, skip, some, done);
		done += some;
	}
	if (st == TW_OK && done < n)
		access_memory(a, t, first + done, n - done, done);
	return st;
}

static bool reserve_piece(struct piece *p, uint64_t n, bool with_cpu)
{
	if (p->cap)
		return true;
	p->part.records.at = tw_mem_alloc(n, sizeof *p->part.records.at);
	p->part.records.cpu = with_cpu ? tw_mem_alloc(n, sizeof *p->part.records.cpu) : NULL;
	p->cap = n;
	return p->part.records.at && (p->part.records.cpu || !with_cpu);
}

enum tw_status tw_piece_read(const struct tw_builder *b, const struct track *t, uint64_t first,
        struct piece *p, struct tw_err *err)
{
	uint64_t n = tw_piece_records(b);
	struct access a = {.builder = b, .err = err};

	p->first = first;
	if (!t->spilled) {
		p->part = *t;
		p->part.n = first ? 0 : t->n;
		return TW_OK;
	}
	if (!reserve_piece(p, n, t->records.cpu))
		return tw_oom(err);
	a.at = p->part.records.at;
	a.cpu = p->part.records.cpu;
	p->part.records = t->records;
	p->part.records.at = a.at;
	p->part.records.cpu = a.cpu;
	p->part.n = n < t->n - first ? n : t->n - first;
	return access_records(&a, t, first, p->part.n);
}

void tw_piece_done(struct piece *p)
{
	if (p->cap) {
		tw_mem_free(p->part.records.at);
		tw_mem_free(p->part.records.cpu);
	}
	*p = (struct piece){0};
}

bool tw_spilled_replace(struct tw_builder *b, struct track *t, uint64_t first, uint64_t n,
        struct record *at, uint32_t *cpu)
{
	const struct access a = {b, at, cpu, true, &b->why};

	b->status = access_records(&a, t, first, n);
	return b->status == TW_OK;
}

/* Makes space for the CPU times of an extent that was written before the track had any. */
static bool add_cpu(struct tw_builder *b, struct extent *e)
{
	uint32_t none[CPU_AT_ONCE];

	memset(none, 0xFF, sizeof none); /* TW_CPU_NONE */
	e->cpu_at = b->scratch_bytes;
	for (uint64_t left = e->n; left;) {
		const uint64_t n = left < CPU_AT_ONCE ? left : CPU_AT_ONCE;

		if (!append(b, none, n * sizeof *none))
			return false;
		left -= n;
	}
	return true;
}

bool tw_spilled_may_move(const struct tw_builder *b, const struct track *t)
{
	uint64_t bytes = b->scratch_bytes + t->n * sizeof(uint16_t);

	for (uint32_t i = 0; t->records.cpu && i < t->spilled->n; i++)
		if (!t->spilled->extents[i].cpu_at)
			bytes += t->spilled->extents[i].n * sizeof *t->records.cpu;
	return bytes <= b->scratch.max_bytes;
}

bool tw_spilled_prepare_moves(struct tw_builder *b, struct track *t)
{
	for (uint32_t i = 0; t->records.cpu && i < t->spilled->n; i++)
		if (!t->spilled->extents[i].cpu_at && !add_cpu(b, &t->spilled->extents[i]))
			return false;
	return true;
}

/* Drops and counts the records that do not fit in memory. */
static void drop_rest(struct tw_builder *b, struct track *t)
{
	const uint64_t most =
	        tw_builder_left_for_records(b) / tw_track_record_bytes(t) + (t->cap - t->n_spilled);

	if (t->n <= most)
		return;
	tw_builder_repair(b, TW_REPAIR_slice_limit, TW_NO_OFFSET, t->n - most);
	t->n = most;
}

bool tw_builder_load(struct tw_builder *b, struct track *t)
{
	struct access a = {.builder = b, .err = &b->why};

	drop_rest(b, t);
	a.at = tw_mem_alloc(t->n, sizeof *a.at);
	a.cpu = t->records.cpu ? tw_mem_alloc(t->n, sizeof *a.cpu) : NULL;
	b->status = a.at && (a.cpu || !t->records.cpu) ? access_records(&a, t, 0, t->n) : TW_NOMEM;
	if (b->status != TW_OK) {
		tw_mem_free(a.at);
		tw_mem_free(a.cpu);
		return false;
	}
	tw_mem_free(t->records.at);
	tw_mem_free(t->records.cpu);
	t->records.at = a.at;
	t->records.cpu = a.cpu;
	t->cap = t->n;
	tw_spilled_free(t);
	return true;
}

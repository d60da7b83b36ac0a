#include "decoder/formats/sampled/perf_maps.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/native_frame.h"
#include "decoder/base/order.h"

enum {
	MAX_MAPS = 16384,   /* of a process */
	ALL_MAPS = 1 << 20, /* of a recording */
	/* maps moved to insert others: limits two processes in the worst order */
	ALL_MOVED = 1 << 28,
	MAX_PARENTS = 8,
	FIRST_TABLE = 64,
	RECENT = 4096 /* a power of two */
};

struct symbol {
	uint64_t vaddr, len;
	struct tw_str name; /* in the input */
	uint32_t sym;       /* 0: not needed so far */
};

struct file {
	struct tw_perf_file info;
	struct symbol *symbols;
	uint32_t n;
	bool sorted, is_art;
	uint32_t sym;         /* of frames without a symbol */
	const char *build_id; /* hex digits; NULL unknown */
};

struct unknown_address { /* an address without a symbol */
	uint64_t address;
	uint32_t file, sym; /* sym 0: no entry */
};

struct map {
	uint64_t start, end, offset;
	uint32_t file;
	bool is_jit;
};

struct process {
	uint32_t pid;
	uint32_t parent; /* index + 1; 0 none */
	struct map *maps;
	uint32_t n, cap;
};

struct table { /* index + 1 by hash */
	uint32_t *slots;
	uint32_t cap, n;
};

struct tw_perf_maps {
	struct tw_arena *arena;
	struct tw_sink *sink;
	uint64_t salt;
	struct file *files;
	uint32_t cap_files;
	struct table by_path;
	struct process *processes;
	uint32_t cap_processes;
	struct table by_pid;
	uint32_t n_maps;
	uint64_t n_moved;
	uint32_t adding;          /* index of the file that receives symbols */
	uint32_t unknown, kernel; /* names of frames outside all maps */
	struct unknown_address recent[RECENT];
};

struct tw_perf_maps *tw_perf_maps_new(struct tw_arena *a, uint64_t salt, struct tw_sink *sink)
{
	struct tw_perf_maps *m = tw_arena_zalloc(a, 1, sizeof *m);

	if (!m)
		return NULL;
	m->arena = a;
	m->sink = sink;
	m->salt = salt;
	return m;
}

/* --- tables --- */

static uint64_t hash_of_file(const struct tw_perf_maps *m, uint32_t i)
{
	return tw_hash_str(m->files[i].info.path, m->salt);
}

static uint64_t hash_of_process(const struct tw_perf_maps *m, uint32_t i)
{
	return tw_hash_id(m->processes[i].pid, m->salt);
}

/* Makes space for one more entry. */
static bool reserve(struct tw_perf_maps *m, struct table *t,
        uint64_t (*hash_of)(const struct tw_perf_maps *, uint32_t))
{
	struct table wider = {.cap = t->cap ? t->cap * 2 : FIRST_TABLE, .n = t->n};

	if (t->n * 2 < t->cap)
		return true;
	wider.slots = tw_arena_zalloc(m->arena, wider.cap, sizeof *wider.slots);
	if (!wider.slots)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t at = (uint32_t)hash_of(m, i) & (wider.cap - 1);

		while (wider.slots[at])
			at = (at + 1) & (wider.cap - 1);
		wider.slots[at] = i + 1;
	}
	*t = wider;
	return true;
}

/* The slot with the file, or the free one where it belongs; NULL if the table is empty. */
static uint32_t *slot_of_path(const struct tw_perf_maps *m, struct tw_str path)
{
	const struct table *t = &m->by_path;
	uint32_t at = t->cap ? (uint32_t)tw_hash_str(path, m->salt) & (t->cap - 1) : 0;

	while (t->cap && t->slots[at] && !tw_str_eq(m->files[t->slots[at] - 1].info.path, path))
		at = (at + 1) & (t->cap - 1);
	return t->cap ? &t->slots[at] : NULL;
}

static uint32_t *slot_of_pid(const struct tw_perf_maps *m, uint32_t pid)
{
	const struct table *t = &m->by_pid;
	uint32_t at = t->cap ? (uint32_t)tw_hash_id(pid, m->salt) & (t->cap - 1) : 0;

	while (t->cap && t->slots[at] && m->processes[t->slots[at] - 1].pid != pid)
		at = (at + 1) & (t->cap - 1);
	return t->cap ? &t->slots[at] : NULL;
}

/* NULL: not seen so far. */
static struct process *known_process(struct tw_perf_maps *m, uint32_t pid)
{
	const uint32_t *slot = slot_of_pid(m, pid);

	return slot && *slot ? &m->processes[*slot - 1] : NULL;
}

static struct process *process_of(struct tw_perf_maps *m, uint32_t pid)
{
	struct process *p = known_process(m, pid);

	if (p)
		return p;
	if (!reserve(m, &m->by_pid, hash_of_process) ||
	        !TW_GROW(m->arena, m->processes, m->by_pid.n, m->cap_processes))
		return NULL;
	*slot_of_pid(m, pid) = m->by_pid.n + 1;
	p = &m->processes[m->by_pid.n++];
	*p = (struct process){.pid = pid};
	return p;
}

/* --- files --- */

static bool is_art(struct tw_str path)
{
	const struct tw_str name = tw_str_last_component(path);

	return tw_str_eq(name, TW_STR("libart.so")) || tw_str_eq(name, TW_STR("libartd.so"));
}

/* Maps of the kernel also contain the symbol by which they were found: "[kernel.kallsyms]_text". */
static struct tw_str path_of(struct tw_str path)
{
	const struct tw_str kernel = TW_STR("[kernel.kallsyms]");

	return tw_str_starts(path, kernel) ? kernel : path;
}

/* Finds or creates the file of this path. NULL: out of memory. */
static struct file *file_of(struct tw_perf_maps *m, struct tw_str path)
{
	const uint32_t *slot = slot_of_path(m, path);
	struct file *f;

	if (slot && *slot)
		return &m->files[*slot - 1];
	if (!reserve(m, &m->by_path, hash_of_file) ||
	        !TW_GROW(m->arena, m->files, m->by_path.n, m->cap_files))
		return NULL;
	*slot_of_path(m, path) = m->by_path.n + 1;
	f = &m->files[m->by_path.n++];
	*f = (struct file){
	        .info = {.path = path, .kind = TW_PERF_FILE_UNKNOWN}, .is_art = is_art(path)};
	return f;
}

bool tw_perf_file_add(struct tw_perf_maps *m, const struct tw_perf_file *info)
{
	struct file *f = file_of(m, path_of(info->path));

	if (!f)
		return false;
	f->info = *info;
	f->info.path = path_of(info->path);
	f->n = 0;
	f->symbols =
	        info->symbols ? tw_arena_alloc(m->arena, info->symbols, sizeof *f->symbols) : NULL;
	if (info->symbols && !f->symbols) {
		f->info.symbols = 0;
		return false;
	}
	m->adding = (uint32_t)(f - m->files);
	return true;
}

bool tw_perf_build_id(struct tw_perf_maps *m, struct tw_str path, const uint8_t *id, size_t n)
{
	char hex[TW_BUILD_ID_HEX];
	struct file *f = file_of(m, path_of(path));

	if (!f)
		return false;
	if (!tw_build_id_hex(id, n, hex) || path.len == 0 || path.ptr[0] == '[')
		return true; /* names nothing */
	if (f->build_id && strcmp(f->build_id, hex) == 0)
		return true;
	f->build_id = tw_arena_str(m->arena, tw_str_of(hex));
	return f->build_id != NULL;
}

void tw_perf_symbol(struct tw_perf_maps *m, uint64_t vaddr, uint64_t len, struct tw_str name)
{
	struct file *f = &m->files[m->adding];

	if (f->n < f->info.symbols)
		f->symbols[f->n++] = (struct symbol){.vaddr = vaddr, .len = len, .name = name};
}

TW_ORDER_BY(by_vaddr, struct symbol, TW_RISING(vaddr), TW_RISING(len), TW_RISING(name))

static struct symbol *symbol_at(struct file *f, uint64_t vaddr)
{
	uint32_t at;

	if (!f->sorted && f->n)
		TW_SORT(f->symbols, f->n, by_vaddr);
	f->sorted = true;
	TW_BISECT(at, f->n, f->symbols[at].vaddr <= vaddr);
	if (at == 0)
		return NULL;
	/* a symbol without a length reaches to the next one */
	if (f->symbols[at - 1].len && vaddr - f->symbols[at - 1].vaddr >= f->symbols[at - 1].len)
		return NULL;
	return &f->symbols[at - 1];
}

/* --- maps --- */

/* Index of the first map that ends after the address. */
static uint32_t first_map(const struct process *p, uint64_t address)
{
	uint32_t at;

	TW_BISECT(at, p->n, p->maps[at].end <= address);
	return at;
}

/* Moves the maps from `from` on to `to`. */
static void shift(struct tw_perf_maps *m, struct process *p, uint32_t from, uint32_t to)
{
	if (from == to)
		return;
	memmove(&p->maps[to], &p->maps[from], (p->n - from) * sizeof *p->maps);
	m->n_moved += p->n - from;
	p->n = p->n - from + to;
}

/* Makes space for a map of [start, end), which replaces the maps there; returns its index. */
static uint32_t reserve_space(
        struct tw_perf_maps *m, struct process *p, uint64_t start, uint64_t end)
{
	uint32_t at = first_map(p, start);
	uint32_t last;

	if (at < p->n && p->maps[at].start < start) {
		if (p->maps[at].end > end) {
			struct map right = p->maps[at];

			right.offset += end - right.start;
			right.start = end;
			p->maps[at].end = start;
			shift(m, p, at + 1, at + 3);
			p->maps[at + 2] = right;
			return at + 1;
		}
		p->maps[at++].end = start;
	}
	for (last = at; last < p->n && p->maps[last].end <= end;)
		last++;
	if (last < p->n && p->maps[last].start < end) {
		p->maps[last].offset += end - p->maps[last].start;
		p->maps[last].start = end;
	}
	shift(m, p, last, at + 1);
	return at;
}

enum tw_perf_added tw_perf_map_add(struct tw_perf_maps *m, const struct tw_perf_map *map)
{
	struct process *p = process_of(m, map->pid);
	const uint64_t end = map->start + map->len;
	struct file *f;

	if (map->len == 0 || end < map->start)
		return TW_PERF_ADDED; /* nothing can be there */
	if (!p)
		return TW_PERF_NO_MEMORY;
	if (p->n + 2 > MAX_MAPS || m->n_maps >= ALL_MAPS || m->n_moved >= ALL_MOVED)
		return TW_PERF_FULL;
	f = file_of(m, path_of(map->path));
	if (!f)
		return TW_PERF_NO_MEMORY;
	/* one more for a map that is split */
	if (!TW_RESERVE(m->arena, p->maps, p->n, p->n + 2, p->cap))
		return TW_PERF_NO_MEMORY;
	m->n_maps++;
	p->maps[reserve_space(m, p, map->start, end)] =
	        (struct map){map->start, end, map->offset, (uint32_t)(f - m->files), map->is_jit};
	return TW_PERF_ADDED;
}

bool tw_perf_fork(struct tw_perf_maps *m, uint32_t pid, uint32_t parent)
{
	struct process *from = process_of(m, parent);
	struct process *p = from && pid != parent ? process_of(m, pid) : NULL;

	if (!from || pid == parent)
		return from != NULL;
	if (!p)
		return false;
	p->n = 0; /* a number that was used before */
	p->parent = (uint32_t)(known_process(m, parent) - m->processes) + 1;
	return true;
}

void tw_perf_exec(struct tw_perf_maps *m, uint32_t pid)
{
	struct process *p = known_process(m, pid);

	if (!p)
		return;
	p->n = 0;
	p->parent = 0;
}

/* --- addresses --- */

static uint64_t vaddr_in(const struct file *f, const struct map *map, uint64_t address)
{
	if (map->is_jit)
		return address;
	switch (f->info.kind) {
	case TW_PERF_FILE_KERNEL:
	case TW_PERF_FILE_SYMBOL_MAP:
		return address;
	case TW_PERF_FILE_MODULE:
	case TW_PERF_FILE_ELF:
		if (!f->info.has_min_offset)
			return address - map->start + f->info.min_vaddr;
		return address - map->start + map->offset - f->info.min_offset + f->info.min_vaddr;
	case TW_PERF_FILE_DEX:
	case TW_PERF_FILE_UNKNOWN:
	default:
		return address - map->start + map->offset;
	}
}

struct tw_str tw_perf_file_frame(struct tw_str path, char out[TW_PERF_FILE_FRAME_BYTES])
{
	struct tw_str name = tw_str_last_component(path);

	if (name.len == 0)
		name = TW_STR("unknown");
	if (name.len > TW_PERF_FILE_FRAME_BYTES - 2)
		name.len = TW_PERF_FILE_FRAME_BYTES - 2;
	if (name.ptr[0] == '[')
		return name;
	out[0] = '[';
	memcpy(out + 1, name.ptr, name.len);
	out[name.len + 1] = ']';
	return (struct tw_str){out, name.len + 2};
}

static uint32_t name_of_file(struct tw_perf_maps *m, struct file *f)
{
	char text[TW_PERF_FILE_FRAME_BYTES];

	if (!f->sym)
		f->sym = m->sink->ops->name(m->sink, tw_perf_file_frame(f->info.path, text));
	return f->sym;
}

/* Whether a frame of the file can be resolved later.  Without the file's kind, its address is an
 * offset in the file. */
static bool is_native(const struct file *f, const struct map *map, bool in_kernel)
{
	return f->build_id && !in_kernel && !map->is_jit &&
	       (f->info.kind == TW_PERF_FILE_ELF || f->info.kind == TW_PERF_FILE_UNKNOWN);
}

static uint32_t name_of_address(struct tw_perf_maps *m, const struct file *f, uint64_t address)
{
	const uint32_t file = (uint32_t)(f - m->files);
	struct unknown_address *p =
	        &m->recent[tw_hash_id(address ^ (uint64_t)file << 48, m->salt) & (RECENT - 1)];
	char text[TW_NATIVE_FRAME_BYTES];

	if (p->sym == 0 || p->address != address || p->file != file)
		*p = (struct unknown_address){address, file,
		        m->sink->ops->name(m->sink,
		                tw_native_frame_name(
		                        &(struct tw_native_frame){.module = f->info.path,
		                                .build_id = tw_str_of(f->build_id),
		                                .address = address,
		                                .is_offset = f->info.kind == TW_PERF_FILE_UNKNOWN},
		                        text))};
	return p->sym;
}

static const struct map *map_at(struct tw_perf_maps *m, uint32_t pid, uint64_t address)
{
	const struct process *p = known_process(m, pid);

	for (unsigned i = 0; p && i < MAX_PARENTS; i++) {
		uint32_t at = first_map(p, address);

		if (at < p->n && p->maps[at].start <= address)
			return &p->maps[at];
		p = p->parent ? &m->processes[p->parent - 1] : NULL;
	}
	return NULL;
}

static struct tw_perf_frame outside(struct tw_perf_maps *m, bool in_kernel)
{
	uint32_t *sym = in_kernel ? &m->kernel : &m->unknown;

	if (!*sym)
		*sym = m->sink->ops->name(
		        m->sink, in_kernel ? TW_STR("[kernel]") : TW_STR("[unknown]"));
	return (struct tw_perf_frame){.sym = *sym, .file = in_kernel ? UINT32_MAX : UINT32_MAX - 1};
}

struct tw_perf_frame tw_perf_find(
        struct tw_perf_maps *m, uint32_t pid, uint64_t address, bool in_kernel)
{
	const struct map *map = map_at(m, in_kernel ? TW_PERF_KERNEL : pid, address);
	struct tw_perf_frame frame;
	struct symbol *s;
	struct file *f;

	if (!map)
		return outside(m, in_kernel);
	f = &m->files[map->file];
	frame = (struct tw_perf_frame){
	        .file = map->file, .is_dex = f->info.kind == TW_PERF_FILE_DEX, .is_art = f->is_art};
	s = symbol_at(f, vaddr_in(f, map, address));
	if (s && s->name.len) {
		if (!s->sym)
			s->sym = m->sink->ops->name(m->sink, s->name);
		frame.sym = s->sym;
		frame.is_named = true;
	} else if (is_native(f, map, in_kernel)) {
		frame.sym = name_of_address(m, f, vaddr_in(f, map, address));
		frame.is_named = true;
	} else {
		frame.sym = name_of_file(m, f);
	}
	return frame;
}

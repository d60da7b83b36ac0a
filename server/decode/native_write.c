/*
 * native_write.c - reads an ELF file by libelf.  It is hostile until it is an image, so this runs
 * in the sandboxed child (compile_mapping.c).
 */
#include "server/decode/compile_mapping.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/symbols/native_image.h"

enum { MAX_FUNCTIONS = 4 << 20, MAX_SEGMENTS = 64, MAX_NAME = 4096 };

#define FUNCTIONS_BYTES ((size_t)1 << 30)

struct function {
	uint64_t start, bytes;
	const char *name; /* in the file */
	bool is_local;
};

struct tw_native_writer {
	struct tw_buf file;
	Elf *elf;
	struct tw_arena *arena;   /* of the next */
	struct tw_list functions; /* struct function */
	struct tw_buf segments, records, names;
};

struct tw_native_writer *tw_native_writer_new(uint64_t max_bytes)
{
	struct tw_native_writer *w = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return NULL;
	tw_buf_init(&w->file, (size_t)max_bytes);
	tw_buf_init(&w->segments, (size_t)MAX_SEGMENTS * NATIVE_RECORD);
	tw_buf_init(&w->records, (size_t)MAX_FUNCTIONS * NATIVE_RECORD);
	tw_buf_init(&w->names, UINT32_MAX);
	w->arena = tw_arena_new(FUNCTIONS_BYTES);
	return w->arena && elf_version(EV_CURRENT) != EV_NONE ? w : tw_native_writer_free(w);
}

struct tw_native_writer *tw_native_writer_free(struct tw_native_writer *w)
{
	if (!w)
		return NULL;
	(void)elf_end(w->elf);
	tw_buf_done(&w->file);
	tw_buf_done(&w->segments);
	tw_buf_done(&w->records);
	tw_buf_done(&w->names);
	tw_arena_free(w->arena);
	tw_mem_free(w);
	return NULL;
}

enum tw_status tw_native_writer_push(
        struct tw_native_writer *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	const enum tw_status st = tw_buf_add(&w->file, p, n);

	if (st == TW_TOO_LARGE)
		return tw_fail_at(err, st, w->file.len, "the symbol file has more than %zu bytes",
		        w->file.max);
	return st == TW_OK ? TW_OK : tw_oom(err);
}

/* --- build id --- */

static bool build_id_in(Elf_Data *notes, char out[TW_BUILD_ID_HEX])
{
	size_t at = 0, name, id, next;
	GElf_Nhdr head;

	while (notes && (next = gelf_getnote(notes, at, &head, &name, &id)) > 0) {
		const uint8_t *p = notes->d_buf;

		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof "GNU" &&
		        memcmp(p + name, "GNU", sizeof "GNU") == 0)
			return tw_build_id_hex(p + id, head.n_descsz, out);
		at = next;
	}
	return false;
}

/* In a section, or in a segment of a file without sections. */
static bool build_id_of(Elf *elf, char out[TW_BUILD_ID_HEX])
{
	Elf_Scn *section = NULL;
	size_t n = 0;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr head;

		if (gelf_getshdr(section, &head) && head.sh_type == SHT_NOTE &&
		        build_id_in(elf_getdata(section, NULL), out))
			return true;
	}
	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		GElf_Phdr head;

		if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_NOTE &&
		        build_id_in(elf_getdata_rawchunk(elf, (int64_t)head.p_offset,
		                            (size_t)head.p_filesz, ELF_T_NHDR),
		                out))
			return true;
	}
	return false;
}

bool tw_native_is_elf(struct tw_str head)
{
	return tw_str_starts(head, TW_STR(ELFMAG));
}

bool tw_native_build_id(struct tw_str file, char out[TW_BUILD_ID_HEX])
{
	Elf *elf;
	bool found;

	if (!tw_native_is_elf(file) || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	elf = elf_memory((char *)(uintptr_t)file.ptr, file.len); /* read only */
	found = elf && build_id_of(elf, out);
	(void)elf_end(elf);
	return found;
}

/* --- symbol tables --- */

static bool add_function(
        struct tw_native_writer *w, const GElf_Sym *s, const char *name, bool is_arm)
{
	struct function *f = tw_list_add(&w->functions, w->arena, sizeof *f);

	if (f) /* the lowest bit marks Thumb code */
		*f = (struct function){.start = s->st_value & ~(uint64_t)is_arm,
		        .bytes = s->st_size,
		        .name = name,
		        .is_local = GELF_ST_BIND(s->st_info) == STB_LOCAL};
	return f != NULL;
}

static bool is_function(const GElf_Sym *s)
{
	const unsigned type = GELF_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx != SHN_ABS;
}

static enum tw_status read_table(
        struct tw_native_writer *w, Elf_Scn *section, size_t strings, struct tw_err *err)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Ehdr head;
	const bool is_arm = gelf_getehdr(w->elf, &head) && head.e_machine == EM_ARM;
	GElf_Sym s;

	for (int i = 0; data && gelf_getsym(data, i, &s); i++) {
		const char *name = is_function(&s) ? elf_strptr(w->elf, strings, s.st_name) : NULL;

		if (!name || !*name)
			continue;
		if (w->functions.n == MAX_FUNCTIONS)
			return tw_fail(err, TW_TOO_LARGE,
			        "the symbol file has more than %d functions", MAX_FUNCTIONS);
		if (!add_function(w, &s, name, is_arm))
			return tw_oom(err);
	}
	return TW_OK;
}

static enum tw_status read_tables(struct tw_native_writer *w, uint32_t type, struct tw_err *err)
{
	Elf_Scn *section = NULL;
	enum tw_status st = TW_OK;

	while (st == TW_OK && (section = elf_nextscn(w->elf, section))) {
		GElf_Shdr head;

		if (gelf_getshdr(section, &head) && head.sh_type == type)
			st = read_table(w, section, head.sh_link, err);
	}
	return st;
}

static void read_soname(Elf *elf, struct tw_native_stats *stats)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr head;
		GElf_Dyn d;
		Elf_Data *data;

		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &d); i++) {
			const char *name = d.d_tag == DT_SONAME
			                           ? elf_strptr(elf, head.sh_link, d.d_un.d_val)
			                           : NULL;

			if (name)
				(void)tw_utf8_clean(
				        stats->name, sizeof stats->name, tw_str_of(name));
		}
	}
}

/* --- the image --- */

/* Of several functions at an address, the largest, and rather one that other files see. */
TW_ORDER_BY(by_start, struct function, TW_RISING(start), TW_FALLING(bytes), TW_RISING(is_local),
        TW_RISING(name))

struct demangling {
	jmp_buf end;
	char *out;
	size_t n;
};

/* Names may expand without bounds: ends the demangler at the limit.  It has no memory to free. */
static void take_demangled(const char *text, size_t n, void *arg)
{
	struct demangling *d = arg;

	if (n > MAX_NAME - d->n)
		longjmp(d->end, 1);
	if (n) /* text may be NULL */
		memcpy(d->out + d->n, text, n);
	d->n += n;
}

typedef int (*demangler_fn)(const char *name, int options, demangle_callbackref take, void *arg);

static bool demangle(struct demangling *d, demangler_fn demangler, const char *name, int options)
{
	d->n = 0;
	if (setjmp(d->end) != 0)
		return false;
	return demangler(name, options, take_demangled, d) != 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): take_demangled writes to it */
static struct tw_str demangled(const char *name, char out[MAX_NAME])
{
	struct demangling d = {.out = out};

	if (name[0] != '_' || strlen(name) >= MAX_NAME)
		return tw_str_of(name);
	/* older Rust's names are also valid in C++, but for their hash */
	if (!demangle(&d, rust_demangle_callback, name, 0) &&
	        !demangle(&d, cplus_demangle_v3_callback, name, DMGL_PARAMS | DMGL_ANSI))
		return tw_str_of(name);
	return (struct tw_str){out, d.n};
}

/* A function without a size ends at the next one. */
static void put_function(struct tw_native_writer *w, const struct function *f, uint64_t end)
{
	char text[MAX_NAME], clean[MAX_NAME];
	const uint64_t bytes = f->bytes && f->bytes < end - f->start ? f->bytes : end - f->start;
	const size_t len = tw_utf8_clean(clean, sizeof clean, demangled(f->name, text));

	(void)tw_buf_add_u64le(&w->records, f->start);
	(void)tw_buf_add_u64le(&w->records, bytes);
	(void)tw_buf_add_u32le(&w->records, (uint32_t)w->names.len);
	(void)tw_buf_add_u32le(&w->records, (uint32_t)len);
	(void)tw_buf_add(&w->names, clean, len);
}

static uint32_t put_functions(struct tw_native_writer *w)
{
	struct function *list = w->functions.items;
	uint32_t n = 0;

	TW_SORT(list, w->functions.n, by_start);
	for (uint32_t i = 0; i < w->functions.n; i++)
		if (n == 0 || list[i].start != list[n - 1].start)
			list[n++] = list[i];
	for (uint32_t i = 0; i < n; i++)
		put_function(
		        w, &list[i], i + 1 < n ? list[i + 1].start : list[i].start + list[i].bytes);
	return n;
}

/* In a file of symbols alone, code has no bytes and offsets are not those of the library. */
static bool has_code(Elf *elf)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr head;

		if (gelf_getshdr(section, &head) && head.sh_flags & SHF_EXECINSTR &&
		        head.sh_type == SHT_NOBITS)
			return false;
	}
	return true;
}

static uint32_t put_segments(struct tw_native_writer *w)
{
	uint32_t n = 0;
	size_t count = 0;

	if (!has_code(w->elf) || elf_getphdrnum(w->elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count && n < MAX_SEGMENTS; i++) {
		GElf_Phdr head;

		if (!gelf_getphdr(w->elf, (int)i, &head) || head.p_type != PT_LOAD)
			continue;
		(void)tw_buf_add_u64le(&w->segments, head.p_vaddr);
		(void)tw_buf_add_u64le(&w->segments, head.p_offset);
		(void)tw_buf_add_u64le(&w->segments, head.p_filesz);
		n++;
	}
	return n;
}

/* The digits of a build id as bytes. */
static void put_build_id(struct tw_buf *out, const char *hex)
{
	uint8_t id[TW_BUILD_ID_MAX] = {0};
	const size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < 2 * n; i++) {
		const unsigned digit = (unsigned)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);

		id[i / 2] = (uint8_t)((unsigned)id[i / 2] << 4 | digit);
	}
	(void)tw_buf_add_u64le(out, n);
	(void)tw_buf_add(out, id, sizeof id);
}

static enum tw_status put_image(struct tw_native_writer *w, struct tw_buf *out,
        const struct tw_native_stats *stats, uint32_t segments, struct tw_err *err)
{
	(void)tw_buf_add(out, NATIVE_MAGIC, NATIVE_MAGIC_BYTES);
	(void)tw_buf_add_u32le(out, (uint32_t)stats->functions);
	(void)tw_buf_add_u32le(out, segments);
	(void)tw_buf_add_u64le(out, w->names.len);
	put_build_id(out, stats->build_id);
	(void)tw_buf_add(out, w->segments.data, w->segments.len);
	(void)tw_buf_add(out, w->records.data, w->records.len);
	(void)tw_buf_add(out, w->names.data, w->names.len);
	if (tw_buf_status(&w->names) == TW_TOO_LARGE || tw_buf_status(out) == TW_TOO_LARGE)
		return tw_fail(err, TW_TOO_LARGE, "the functions' names exceed the limit");
	if (tw_buf_status(&w->names) != TW_OK || tw_buf_status(&w->records) != TW_OK ||
	        tw_buf_status(out) != TW_OK)
		return tw_oom(err);
	return TW_OK;
}

enum tw_status tw_native_writer_finish(struct tw_native_writer *w, struct tw_buf *out,
        struct tw_native_stats *ret, struct tw_err *err)
{
	struct tw_native_stats stats = {0};
	uint32_t segments;
	enum tw_status st;

	if (!tw_native_is_elf(tw_buf_str(&w->file)))
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "not an ELF file: send a .so with its symbols, or its .debug file");
	w->elf = elf_memory((char *)w->file.data, w->file.len);
	if (!w->elf || elf_kind(w->elf) != ELF_K_ELF)
		return tw_fail_at(err, TW_CORRUPT, 0, "a damaged ELF file");
	if (!build_id_of(w->elf, stats.build_id))
		return tw_fail(err, TW_UNSUPPORTED,
		        "an ELF file without a build id: link it with -Wl,--build-id");
	st = read_tables(w, SHT_SYMTAB, err);
	if (st == TW_OK && w->functions.n == 0)
		st = read_tables(w, SHT_DYNSYM, err);
	if (st != TW_OK)
		return st;
	if (w->functions.n == 0)
		return tw_fail(err, TW_UNSUPPORTED,
		        "an ELF file without functions: send the file before stripping");
	read_soname(w->elf, &stats);
	segments = put_segments(w);
	stats.functions = put_functions(w);
	st = put_image(w, out, &stats, segments, err);
	if (st == TW_OK)
		*ret = stats;
	return st;
}

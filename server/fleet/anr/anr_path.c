/*
 * anr_path.c - what many looks at a main thread have in common: from its outermost frame inwards as
 * long as half of all looks go the same way.
 */
#include "server/fleet/anr/anr_cause_int.h"

struct look {
	const json_t *frames; /* the innermost first */
	size_t n;
};

static const char *inwards(const struct look *l, size_t depth)
{
	return depth < l->n ? tw_anr_word(json_array_get(l->frames, l->n - 1 - depth), "name")
	                    : NULL;
}

static size_t read_looks(const json_t *doc, struct look looks[TW_ANR_LOOKS_MAX])
{
	const json_t *processes = json_object_get(doc, "processes");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(processes) && n < TW_ANR_LOOKS_MAX; i++) {
		const json_t *p = json_array_get(processes, i);
		const json_t *main = tw_anr_at(json_object_get(p, "threads"), p, "main");
		const json_t *frames = json_object_get(main, "frames");

		if (json_array_size(frames))
			looks[n++] = (struct look){frames, json_array_size(frames)};
	}
	return n;
}

/* The name that most of the looks have at that depth. */
static const char *commonest(
        const struct look looks[TW_ANR_LOOKS_MAX], size_t n, size_t depth, size_t *ret_count)
{
	const char *best = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = inwards(&looks[i], depth);
		size_t count = 0;

		for (size_t k = 0; name && k < n; k++) {
			const char *other = inwards(&looks[k], depth);

			count += other && strcmp(other, name) == 0;
		}
		if (count > *ret_count) {
			*ret_count = count;
			best = name;
		}
	}
	return best;
}

/* Leaves the looks that have that name at that depth. */
static size_t narrow(struct look looks[TW_ANR_LOOKS_MAX], size_t n, size_t depth, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *its = inwards(&looks[i], depth);

		if (its && strcmp(its, name) == 0)
			looks[kept++] = looks[i];
	}
	return kept;
}

json_t *tw_anr_path_of_looks(const json_t *doc)
{
	enum { DEPTH_MAX = 256 };
	struct look looks[TW_ANR_LOOKS_MAX];
	size_t n = read_looks(doc, looks);
	size_t all = n;
	json_t *path = json_array();

	for (size_t depth = 0; depth < DEPTH_MAX && n; depth++) {
		size_t count;
		const char *name = commonest(looks, n, depth, &count);

		if (!name || count * 2 < all)
			break;
		if (json_array_insert_new(path, 0, json_string(name)) != 0) {
			json_decref(path);
			return NULL;
		}
		n = narrow(looks, n, depth, name);
	}
	return path;
}

bool tw_anr_path_is_io(const json_t *names)
{
	static const char *const packages[] = {"java.io.", "java.nio.", "sun.nio.", "libcore.io.",
	        "java.net.", "android.system.Os.", "android.database.sqlite.", "java.util.zip.",
	        "android.app.SharedPreferencesImpl"};
	const char *deepest = json_string_value(json_array_get(names, 0));

	for (size_t i = 0; deepest && i < sizeof packages / sizeof *packages; i++)
		if (strncmp(deepest, packages[i], strlen(packages[i])) == 0)
			return true;
	return false;
}

/*
 * anr_path.c - the common path of several samples of a main thread: from its outermost frame
 * inwards, as long as at least half of all samples share it.
 */
#include "server/fleet/anr/anr_cause_int.h"

struct sample {
	const json_t *frames; /* innermost first */
	size_t n;
};

static const char *name_at_depth(const struct sample *l, size_t depth)
{
	return depth < l->n ? tw_anr_text_of(json_array_get(l->frames, l->n - 1 - depth), "name")
	                    : NULL;
}

static size_t read_samples(const json_t *doc, struct sample samples[TW_ANR_SAMPLES_MAX])
{
	const json_t *processes = json_object_get(doc, "processes");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(processes) && n < TW_ANR_SAMPLES_MAX; i++) {
		const json_t *p = json_array_get(processes, i);
		const json_t *main = tw_anr_at(json_object_get(p, "threads"), p, "main");
		const json_t *frames = json_object_get(main, "frames");

		if (json_array_size(frames))
			samples[n++] = (struct sample){frames, json_array_size(frames)};
	}
	return n;
}

/* The most frequent name at a depth. */
static const char *commonest(
        const struct sample samples[TW_ANR_SAMPLES_MAX], size_t n, size_t depth, size_t *ret_count)
{
	const char *best = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = name_at_depth(&samples[i], depth);
		size_t count = 0;

		for (size_t k = 0; name && k < n; k++) {
			const char *other = name_at_depth(&samples[k], depth);

			count += other && strcmp(other, name) == 0;
		}
		if (count > *ret_count) {
			*ret_count = count;
			best = name;
		}
	}
	return best;
}

/* Leaves the samples that have this name at this depth. */
static size_t narrow(
        struct sample samples[TW_ANR_SAMPLES_MAX], size_t n, size_t depth, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *its = name_at_depth(&samples[i], depth);

		if (its && strcmp(its, name) == 0)
			samples[kept++] = samples[i];
	}
	return kept;
}

json_t *tw_anr_path_of_samples(const json_t *doc)
{
	enum { DEPTH_MAX = 256 };
	struct sample samples[TW_ANR_SAMPLES_MAX];
	size_t n = read_samples(doc, samples);
	size_t all = n;
	json_t *path = json_array();

	for (size_t depth = 0; depth < DEPTH_MAX && n; depth++) {
		size_t count;
		const char *name = commonest(samples, n, depth, &count);

		if (!name || count * 2 < all)
			break;
		if (json_array_insert_new(path, 0, json_string(name)) != 0) {
			json_decref(path);
			return NULL;
		}
		n = narrow(samples, n, depth, name);
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

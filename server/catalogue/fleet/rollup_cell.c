#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/catalogue/traces/catalogue_trace.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { LOW_BELOW_MB = 3072, MID_BELOW_MB = 6144, HASHED_BYTES = 12 * 1024 };

/* --- ids --- */

int64_t tw_rollup_cell_id(const struct tw_rollup_dims *d)
{
	char text[HASHED_BYTES];

	(void)snprintf(text, sizeof text, "%lld\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s", (long long)d->day,
	        d->app, d->version_name, d->build_id, d->mapping_id, d->scenario, d->device_class,
	        d->os, d->label);
	return (int64_t)tw_rollup_number(text);
}

/* --- labels --- */

static json_t *read_labels(const char *labels)
{
	json_t *o = labels[0] ? json_loads(labels, 0, NULL) : NULL;

	if (o && !json_is_object(o)) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* A text or integer as a text usable in a key; false: neither. */
static bool plain(const json_t *v, char out[TW_ROLLUP_VALUE_BYTES])
{
	if (json_is_string(v))
		(void)tw_utf8_clean(out, TW_ROLLUP_VALUE_BYTES, tw_str_of(json_string_value(v)));
	else if (json_is_integer(v))
		(void)snprintf(
		        out, TW_ROLLUP_VALUE_BYTES, "%lld", (long long)json_integer_value(v));
	else if (json_is_boolean(v))
		(void)snprintf(
		        out, TW_ROLLUP_VALUE_BYTES, "%s", json_is_true(v) ? "true" : "false");
	else
		return false;
	return out[0] != '\0';
}

static const char *class_by_memory(const json_t *ram)
{
	json_int_t mb = json_integer_value(ram);
	uint64_t number;

	if (json_is_string(ram) &&
	        tw_str_u64(tw_str_of(json_string_value(ram)), INT32_MAX, &number))
		mb = (json_int_t)number;
	if (mb <= 0)
		return "unknown";
	return mb < LOW_BELOW_MB ? "low" : mb < MID_BELOW_MB ? "mid" : "high";
}

const char *tw_rollup_device_class(const char *labels)
{
	static const char *const names[] = {"low", "mid", "high"};
	json_t *o = read_labels(labels);
	const char *text = json_string_value(json_object_get(o, "device_class"));
	const char *found = NULL;

	for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0)
			found = names[i];
	if (!found)
		found = class_by_memory(json_object_get(o, "ram_mb"));
	json_decref(o);
	return found;
}

enum { METAS = 5 };
static const char *const meta_keys[METAS] = {
        "device", "abi", "process", "version_code", "session_id"};

static const char *meta_at(const struct tw_trace_meta *m, int i)
{
	const char *const values[METAS] = {
	        m->device, m->abi, m->process, m->version_code, m->session_id};

	return values[i];
}

/* The value of that name in the row itself; NULL: none. */
static const char *meta_of(const struct tw_trace_meta *m, const char *key)
{
	for (int i = 0; i < METAS; i++)
		if (strcmp(meta_keys[i], key) == 0)
			return meta_at(m, i);
	return NULL;
}

static bool value_of(const struct tw_trace_row *row, const json_t *labels, const char *key,
        char out[TW_ROLLUP_VALUE_BYTES])
{
	const char *text = meta_of(&row->meta, key);

	if (!text)
		return plain(json_object_get(labels, key), out);
	(void)tw_utf8_clean(out, TW_ROLLUP_VALUE_BYTES, tw_str_of(text));
	return out[0] != '\0';
}

bool tw_rollup_each_label(const struct tw_trace_row *row,
        bool (*each)(void *arg, const char *key, const char *value), void *arg)
{
	json_t *object = read_labels(row->meta.labels);
	char value[TW_ROLLUP_VALUE_BYTES], name[TW_ROLLUP_VALUE_BYTES];
	bool fine = true;
	const char *key;
	json_t *v;

	for (int i = 0; fine && i < METAS; i++)
		if (value_of(row, NULL, meta_keys[i], value))
			fine = each(arg, meta_keys[i], value);
	json_object_foreach(object, key, v)
	{
		if (!fine || meta_of(&row->meta, key) || !plain(v, value))
			continue;
		(void)tw_utf8_clean(name, sizeof name, tw_str_of(key));
		fine = each(arg, name, value);
	}
	json_decref(object);
	return fine;
}

enum tw_status tw_rollup_cells(const struct tw_trace_row *row, const char *const *labels,
        size_t n_labels, struct tw_arena *a, struct tw_rollup_dims ret[TW_ROLLUP_CELLS_MAX],
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_trace_meta *m = &row->meta;
	json_t *object = read_labels(m->labels);
	char value[TW_ROLLUP_VALUE_BYTES];
	bool fits = true;

	ret[0] = (struct tw_rollup_dims){m->recorded_ms / TW_DAY_MS, m->app, m->version_name,
	        m->build_id, m->mapping_id, m->scenario, tw_rollup_device_class(m->labels), m->os,
	        ""};
	*ret_n = 1;
	for (size_t i = 0; i < n_labels && i < TW_ROLLUP_LABELS_MAX; i++) {
		struct tw_rollup_dims *d = &ret[*ret_n];

		if (!value_of(row, object, labels[i], value))
			value[0] = '\0';
		*d = ret[0];
		d->device_class = d->os = "";
		d->label = tw_arena_printf(a, "%s=%s", labels[i], value);
		fits = fits && d->label;
		++*ret_n;
	}
	json_decref(object);
	return fits ? TW_OK : tw_oom(err);
}

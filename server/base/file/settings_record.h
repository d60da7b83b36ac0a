/*
 * settings_record.h - a file of settings that the server writes for its own next start.
 *
 * One `name = value` per line, as in a configuration file, so that tw_config_load reads it.
 * Thread: one at a time per path.
 */
#ifndef TW_SETTINGS_RECORD_H
#define TW_SETTINGS_RECORD_H

#include <stddef.h>

#include "decoder/base/err.h"

struct tw_setting_line {
	const char *name, *value; /* value "": left out */
};

/* Replaces the file.  `comment` becomes its first line.  If the first setting has no value, the
 * file is deleted instead. */
enum tw_status tw_settings_record_write(const char *path, const char *comment,
        const struct tw_setting_line *lines, size_t n, struct tw_err *err) TW_MUST_USE;

#endif

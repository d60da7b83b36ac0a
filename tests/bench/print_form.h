/*
 * print_form.h - the form that btrace 2.0's script wrote, for comparison: the kernel's trace
 * markers as text, in order of time, 4,096 per bundle.
 */
#ifndef TW_PRINT_FORM_H
#define TW_PRINT_FORM_H

#include "server/trace/trace_file.h"

struct printed {
	uint64_t bytes, zstd_bytes;
};
void print_form(struct tw_trace_file *f, struct printed *ret);

#endif

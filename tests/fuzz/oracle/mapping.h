/* mapping.h - mappings with the cut oracle: a text in pieces makes the same image as in one, and
 * any bytes are safe to read as an image. */
#ifndef TW_FUZZ_MAPPING_H
#define TW_FUZZ_MAPPING_H

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { FUZZ_REPORT_BYTES = 512 };

struct fuzz_mapping {
	void *(*start)(void); /* a writer; NULL: no memory */
	enum tw_status (*push)(void *writer, const uint8_t *p, size_t n);
	/* output, zeroed first: the writer's statistics */
	enum tw_status (*finish)(
	        void *writer, struct tw_buf *image, uint8_t reported[FUZZ_REPORT_BYTES]);
	void (*stop)(void *writer);
	/* Asks an image all there is to ask, with pieces of the text for names; false: it is none.
	 */
	bool (*ask)(const uint8_t *image, size_t image_len, const uint8_t *text, size_t n);
};

/* The input's first byte selects how the rest is split. */
void fuzz_mapping(const struct fuzz_mapping *m, const uint8_t *data, size_t size);

#endif

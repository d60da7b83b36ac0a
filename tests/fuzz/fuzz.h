/* fuzz.h - the entry of a fuzz target, as libFuzzer and regress.c call it. */
#ifndef TW_FUZZ_H
#define TW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Findings are crashes: a sentence and the end. */
#define FUZZ_CHECK(what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif

/*
 * anr_again.h - a document "anr" read back into the model it was made from.
 *
 * A mapping of names may come after a report was decoded (I8), and with the names
 * everything changes that depends on them: whose frames are the application's, which
 * one says what a thread does, the verdict, the cluster.  So the document is read back,
 * named, judged and written again.  What its bounds left out stays left out.
 * Thread: one reader.
 */
#ifndef TW_ANR_AGAIN_H
#define TW_ANR_AGAIN_H

#include <jansson.h>

#include "decoder/formats/anr/anr_judge.h"

struct tw_anr_namer {
	void *arg;
	/* A thread's frames follow, topmost first. */
	void (*thread)(void *arg);
	/* Adds what a Java frame stands for: none, one, or more that were inlined into each other.
	 */
	void (*frame)(void *arg, struct tw_anr *m, struct tw_str name, struct tw_str where);
	/* A class of an object; the text that is given back is copied. */
	struct tw_str (*type)(void *arg, struct tw_str type);
};

/* Fills an initialized model.  *ret_times_ns: of each dump, for tw_anr_document.  Members that are
 * not as schema/anr.md says count as absent.  False: no memory. */
bool tw_anr_again(struct tw_anr *m, const json_t *doc, const struct tw_anr_namer *namer,
        int64_t **ret_times_ns);

/* Adds a Java frame to the last thread. */
void tw_anr_again_frame(struct tw_anr *m, struct tw_str name, struct tw_str where, bool inlined);

#endif

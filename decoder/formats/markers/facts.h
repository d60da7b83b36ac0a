/*
 * facts.h - parses facts out of section names.
 *
 * The runtime, the framework and btrace write sections whose names are sentences: which thread
 * waits for which lock and where, which file is read, which thread was created.  The section
 * remains a call as well.
 */
#ifndef TW_FACTS_H
#define TW_FACTS_H

#include <stdbool.h>

#include "decoder/formats/detail.h"
#include "decoder/formats/notes.h"

struct tw_fact {
	enum tw_note_kind kind;
	bool moment;          /* happened when the section began; otherwise it lasts as long as the
	                       * section */
	int64_t value;        /* as documented in notes.def for the kind */
	struct tw_str text;   /* points into the name */
	struct tw_str detail; /* points into buffer; "" if none */
	struct tw_detail buffer;
};

/* Parses the name of a section.  False: no known fact. */
bool tw_fact_of(struct tw_str name, struct tw_fact *ret);

/* "<rhea-draft>binder transact[INTERFACE:CODE]": btrace 2.0 writes codes, binder.txt has their
 * names.  ret_before is the text before the "<". */
bool tw_fact_binder_draft(struct tw_str name, struct tw_str *ret_before,
        struct tw_str *ret_interface, uint64_t *ret_code);

#endif

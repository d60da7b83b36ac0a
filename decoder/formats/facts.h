/*
 * facts.h - what the name of a section says in words, as values.
 *
 * The runtime, the framework and btrace write sections whose names are
 * sentences: who waits for whose lock and where, which file is read, which
 * thread was created.  This reads them; the section stays a call as well.
 */
#ifndef TW_FACTS_H
#define TW_FACTS_H

#include <stdbool.h>

#include "decoder/formats/detail.h"
#include "decoder/formats/notes.h"

struct tw_fact {
	enum tw_note_kind kind;
	bool moment;          /* it happened when the section began; else it lasts as long */
	int64_t value;        /* as notes.def says for the kind */
	struct tw_str text;   /* lies within the name */
	struct tw_str detail; /* lies in room; "" when there is none */
	struct tw_detail room;
};

/* Reads the name of a section.  False: it says nothing that is known here. */
bool tw_fact_of(struct tw_str name, struct tw_fact *ret);

/* "<rhea-draft>binder transact[INTERFACE:CODE]": btrace 2.0 writes codes, binder.txt has their
 * names.  ret_before is what stands before the "<". */
bool tw_fact_binder_draft(struct tw_str name, struct tw_str *ret_before,
        struct tw_str *ret_interface, uint64_t *ret_code);

#endif

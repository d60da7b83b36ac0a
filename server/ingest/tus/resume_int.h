/*
 * resume_int.h - between the uploads that come in pieces (resume.c) and their files
 * (resume_file.c).
 */
#ifndef TW_RESUME_INT_H
#define TW_RESUME_INT_H

#include "server/ingest/tus/resume.h"

struct tw_resume_entry {
	struct tw_resume r; /* first */
	bool busy, dropped, apart;
	int fd;             /* of the piece under way, -1 none */
	uint64_t pending;   /* bytes of a piece apart */
	uint64_t checked;   /* at this offset the disk's room was looked at */
	int64_t touched_ms; /* when read at start: the last byte came */
	struct tw_resume_entry *next;
};

void tw_resume_path(
        const struct tw_blobs *b, const char *id, const char *suffix, char *out, size_t cap);
enum tw_status tw_resume_store(
        struct tw_blobs *b, const struct tw_resume *r, struct tw_err *err) TW_MUST_USE;
/* All that the folder holds; what belongs to none is removed. */
enum tw_status tw_resume_load_all(
        struct tw_blobs *b, struct tw_resume_entry **ret, struct tw_err *err) TW_MUST_USE;
void tw_resume_remove(struct tw_blobs *b, const char *id);
/* Makes names in the folder durable. */
enum tw_status tw_resume_sync_folder(const struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;

/* Notes, durably, that a part is durable up to this offset (resume_mark.c). */
enum tw_status tw_resume_mark(
        const struct tw_blobs *b, const char *id, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* How much of a part of that size is what was sent: all of it in the same boot, else up to its
 * mark.  Not of this boot: the mark is to be set anew, or what comes from now on is not believed
 * after a kill. */
uint64_t tw_resume_believed(
        const struct tw_blobs *b, const char *id, uint64_t size, bool *ret_of_this_boot);
struct tw_resume_entry *tw_resume_free(struct tw_resume_entry *e);

#endif

/* Checks of the object storage: reachable, permitted, private. */
#include <string.h>
#include <sys/stat.h>

#include "decoder/base/arena.h"
#include "server/catalogue/storage/storage_mark.h"
#include "server/ops/doctor.h"
#include "server/storage/blob_store.h"

enum { SETTINGS_BYTES = 1 << 20, TIMEOUT_S = 10 };

static void check_privacy(struct tw_doctor *d, const struct tw_storage *s)
{
	static const char *const loopback[] = {"http://127.", "http://localhost", "http://[::1]"};
	bool is_loopback = false;
	struct stat st;

	for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
		is_loopback =
		        is_loopback || strncmp(s->endpoint, loopback[i], strlen(loopback[i])) == 0;
	if (strncmp(s->endpoint, "http://", 7) == 0 && !is_loopback)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "storage_plain",
		        "%s is used without TLS, so the network can read uploads and traces. Set "
		        "--s3-endpoint to an https address, with --s3-ca-file for a private "
		        "certificate.",
		        s->endpoint);
	if (*s->credentials_file && stat(s->credentials_file, &st) == 0 && st.st_mode & 077)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage_key_mode",
		        "Other users of this machine can read the key in %s (mode %03o). Run "
		        "chmod 600 on it.",
		        s->credentials_file, (unsigned)st.st_mode & 0777);
}

static void check_reached(struct tw_doctor *d, const struct tw_storage *s)
{
	const struct tw_store_engine *engine = NULL;
	struct tw_storage quick = *s;
	struct tw_err err = {.msg = ""};
	void *store = NULL;
	enum tw_status st = tw_store_engine_of(s->blobs, &engine, &err);

	quick.timeout_s = TIMEOUT_S;
	if (st == TW_OK)
		st = engine->open(&(struct tw_store_endpoint){.data_dir = d->data ? d->data : ".",
		                          .storage = &quick},
		        &store, &err);
	if (st == TW_OK)
		st = engine->probe(store, &err);
	if (st == TW_OK)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "storage",
		        "%s answers, and the key may list its objects.", s->blobs);
	else if (st == TW_BUSY)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s does not answer: %s. Uploads are refused (503) until it does. Check "
		        "--s3-endpoint and the network.",
		        s->blobs, err.msg);
	else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s refuses: %s. Check that the bucket exists and that the key may list, "
		        "get, put and delete objects below the prefix.",
		        s->blobs, err.msg);
	if (store)
		engine->close(store);
}

void tw_doctor_storage(struct tw_doctor *d)
{
	struct tw_arena *a = tw_arena_new(SETTINGS_BYTES);
	struct tw_storage s = *d->storage;
	struct tw_err err;

	if (a && !*s.blobs && d->data && tw_storage_of(d->data, a, &s, &err) != TW_OK)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s/storage, the settings of the store, cannot be used: %s.", d->data,
		        err.msg);
	if (*s.blobs) {
		check_privacy(d, &s);
		check_reached(d, &s);
	}
	(void)tw_arena_free(a);
}

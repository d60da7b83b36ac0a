/* digest_chain.c - uploads as they are decoded; see digest.h. */
#include "decoder/bundle.h"
#include "tests/fuzz/oracle/digest.h"

static enum tw_status push_chain(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_decoder_push(arg, p, n, err);
}

void digest_chain(struct digest *d, const struct digest_task *t)
{
	struct tw_decoder *chain = tw_decoder_new(t->a, &t->limits, NULL, NULL, &d->sink);

	d->status = chain ? digest_feed(t, push_chain, chain, &d->err) : TW_NOMEM;
	if (d->status == TW_OK)
		d->status = tw_decoder_finish(chain, &d->err);
	if (chain) {
		d->format = tw_decoder_format(chain);
		d->bytes = tw_decoder_bytes(chain);
	}
	(void)tw_decoder_free(chain);
}

struct archive {
	struct digest *d;
	struct digest_task input;
};

static enum tw_status feed(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	return digest_feed(&((struct archive *)arg)->input, push, to, err);
}

static void side(void *arg, enum tw_bundle_side what)
{
	digest_word(((struct archive *)arg)->d, (unsigned)what);
}

static enum tw_status keep(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++) /* whatever the pieces */
		digest_word(((struct archive *)arg)->d, p[i]);
	return TW_OK;
}

void digest_bundle(struct digest *d, const struct digest_task *t)
{
	struct archive archive = {d, *t};
	const struct tw_bundle_task task = {.arena = t->a,
	        .limits = &t->limits,
	        .sink = &d->sink,
	        .arg = &archive,
	        .feed = feed,
	        .side = side,
	        .keep = keep};

	d->status = tw_bundle_decode(&task, &d->format, &d->bytes, &d->err);
}

#include "server/http/limit/tls.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"

enum { MAX_PEM = 1 << 20, MAX_CHAIN = 16 };

struct pair {                     /* a chain and the private key of its first certificate */
	gnutls_x509_crt_t *chain; /* allocated by gnutls */
	unsigned n;
	gnutls_x509_privkey_t key;
};

struct stamp { /* identifies a state of the files */
	struct timespec changed[2];
	ino_t inode[2];
	off_t size[2];
};

struct tw_tls {
	const char *paths[2]; /* certificate, key */
	pthread_mutex_t lock; /* of the fields below */
	struct pair now;
	struct stamp stamp;
};

static void free_pair(struct pair *p)
{
	for (unsigned i = 0; i < p->n; i++)
		gnutls_x509_crt_deinit(p->chain[i]);
	gnutls_free(p->chain);
	if (p->key)
		gnutls_x509_privkey_deinit(p->key);
	*p = (struct pair){.n = 0};
}

/* --- files --- */

static enum tw_status cannot_read(const char *path, struct tw_err *err)
{
	return tw_fail_errno(err, TW_IO, "cannot read %.100s", path);
}

static enum tw_status stamp_of(const struct tw_tls *t, struct stamp *ret, struct tw_err *err)
{
	struct stat st;

	memset(ret, 0, sizeof *ret);
	for (int i = 0; i < 2; i++) {
		if (stat(t->paths[i], &st) != 0)
			return cannot_read(t->paths[i], err);
		ret->changed[i] = st.st_mtim;
		ret->inode[i] = st.st_ino;
		ret->size[i] = st.st_size;
	}
	return TW_OK;
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
	for (int i = 0; i < 2; i++)
		if (a->changed[i].tv_sec != b->changed[i].tv_sec ||
		        a->changed[i].tv_nsec != b->changed[i].tv_nsec ||
		        a->inode[i] != b->inode[i] || a->size[i] != b->size[i])
			return false;
	return true;
}

/* The file's bytes; wipe() clears memory that held a key. */
static enum tw_status read_pem(const char *path, gnutls_datum_t *ret, struct tw_err *err)
{
	uint8_t *p = tw_mem_alloc(MAX_PEM, 1);
	const ssize_t n = p ? tw_file_read(path, p, MAX_PEM) : 0;

	if (n < 0)
		cannot_read(path, err);
	*ret = (gnutls_datum_t){p, n > 0 ? (unsigned)n : 0};
	return !p ? tw_oom(err) : n < 0 ? TW_IO : TW_OK;
}

static void wipe(gnutls_datum_t *d)
{
	if (d->data)
		gnutls_memset(d->data, 0, d->size);
	tw_mem_free(d->data);
	d->data = NULL;
}

static enum tw_status no_pem(const char *path, const char *what, int rc, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST, "%.100s contains no %s in PEM: %s", path, what,
	        gnutls_strerror(rc));
}

static enum tw_status read_chain(const char *path, struct pair *p, struct tw_err *err)
{
	gnutls_datum_t pem = {.data = NULL};
	enum tw_status st = read_pem(path, &pem, err);
	int rc = 0;

	if (st == TW_OK)
		rc = gnutls_x509_crt_list_import2(&p->chain, &p->n, &pem, GNUTLS_X509_FMT_PEM,
		        GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
	wipe(&pem);
	if (st == TW_OK && rc < 0) {
		p->chain = NULL;
		p->n = 0;
		return no_pem(path, "certificates, the server's first,", rc, err);
	}
	return st;
}

static enum tw_status read_key(const char *path, struct pair *p, struct tw_err *err)
{
	gnutls_datum_t pem = {.data = NULL};
	enum tw_status st = read_pem(path, &pem, err);
	int rc = 0;

	if (st == TW_OK && gnutls_x509_privkey_init(&p->key) != 0)
		st = tw_oom(err);
	if (st == TW_OK)
		rc = gnutls_x509_privkey_import2(
		        p->key, &pem, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN);
	wipe(&pem);
	return st == TW_OK && rc < 0 ? no_pem(path, "private key", rc, err) : st;
}

/* Whether the key belongs to the certificate, by the id of their public keys. */
static bool fits(const struct pair *p)
{
	uint8_t of_crt[64], of_key[64];
	size_t n_crt = sizeof of_crt, n_key = sizeof of_key;

	return gnutls_x509_crt_get_key_id(p->chain[0], GNUTLS_KEYID_USE_SHA256, of_crt, &n_crt) ==
	               0 &&
	       gnutls_x509_privkey_get_key_id(p->key, GNUTLS_KEYID_USE_SHA256, of_key, &n_key) ==
	               0 &&
	       n_crt == n_key && memcmp(of_crt, of_key, n_crt) == 0;
}

static enum tw_status read_pair(const struct tw_tls *t, struct pair *ret, struct tw_err *err)
{
	enum tw_status st = read_chain(t->paths[0], ret, err);

	if (st == TW_OK && (ret->n == 0 || ret->n > MAX_CHAIN))
		st = tw_fail(err, TW_BAD_REQUEST, "%.100s must contain 1 to %d certificates",
		        t->paths[0], (int)MAX_CHAIN);
	if (st == TW_OK)
		st = read_key(t->paths[1], ret, err);
	if (st == TW_OK && !fits(ret))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "the key in %.60s does not match the certificate in %.60s", t->paths[1],
		        t->paths[0]);
	if (st != TW_OK)
		free_pair(ret);
	return st;
}

/* --- current certificate --- */

enum tw_status tw_tls_open(
        const char *cert_path, const char *key_path, struct tw_tls **ret, struct tw_err *err)
{
	struct tw_tls *t = tw_mem_zalloc(1, sizeof *t);
	bool is_new;
	enum tw_status st;

	if (!t)
		return tw_oom(err);
	t->paths[0] = cert_path;
	t->paths[1] = key_path;
	(void)pthread_mutex_init(&t->lock, NULL);
	st = tw_tls_reload(t, true, &is_new, err);
	if (st == TW_OK)
		*ret = t;
	else
		(void)tw_tls_close(t);
	return st;
}

struct tw_tls *tw_tls_close(struct tw_tls *t)
{
	if (!t)
		return NULL;
	free_pair(&t->now);
	(void)pthread_mutex_destroy(&t->lock);
	tw_mem_free(t);
	return NULL;
}

/* The files' state is recorded before they are read, so that changes during the reading are read
 * again. */
enum tw_status tw_tls_reload(struct tw_tls *t, bool anyway, bool *ret_new, struct tw_err *err)
{
	struct pair fresh = {.n = 0};
	struct pair before;
	struct stamp stamp;
	bool due;
	enum tw_status st = stamp_of(t, &stamp, err);

	if (st != TW_OK)
		return st;
	(void)pthread_mutex_lock(&t->lock);
	due = anyway || !is_same(&stamp, &t->stamp);
	t->stamp = stamp; /* each error is reported once */
	(void)pthread_mutex_unlock(&t->lock);
	*ret_new = false;
	if (!due)
		return TW_OK;
	st = read_pair(t, &fresh, err);
	if (st != TW_OK)
		return st;
	(void)pthread_mutex_lock(&t->lock);
	before = t->now;
	t->now = fresh;
	(void)pthread_mutex_unlock(&t->lock);
	free_pair(&before);
	*ret_new = true;
	return TW_OK;
}

int64_t tw_tls_ends_s(struct tw_tls *t)
{
	int64_t ends_s;

	(void)pthread_mutex_lock(&t->lock);
	ends_s = gnutls_x509_crt_get_expiration_time(t->now.chain[0]);
	(void)pthread_mutex_unlock(&t->lock);
	return ends_s;
}

/* --- for a handshake --- */

static void free_chain(gnutls_pcert_st *chain, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		gnutls_pcert_deinit(&chain[i]);
	gnutls_free(chain);
}

static bool copy_chain(const struct pair *p, gnutls_pcert_st **ret)
{
	gnutls_pcert_st *chain = gnutls_calloc(p->n, sizeof *chain);

	for (unsigned i = 0; chain && i < p->n; i++)
		if (gnutls_pcert_import_x509(&chain[i], p->chain[i], 0) != 0) {
			free_chain(chain, i);
			return false;
		}
	*ret = chain;
	return chain != NULL;
}

bool tw_tls_copy(
        struct tw_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_n, gnutls_privkey_t *ret_key)
{
	gnutls_pcert_st *chain = NULL;
	gnutls_privkey_t key = NULL;
	bool ok;

	(void)pthread_mutex_lock(&t->lock);
	ok = copy_chain(&t->now, &chain);
	if (ok)
		*ret_n = t->now.n;
	ok = ok && gnutls_privkey_init(&key) == 0 &&
	     gnutls_privkey_import_x509(key, t->now.key, GNUTLS_PRIVKEY_IMPORT_COPY) == 0;
	(void)pthread_mutex_unlock(&t->lock);
	if (ok) {
		*ret_chain = chain;
		*ret_key = key;
		return true;
	}
	if (key)
		gnutls_privkey_deinit(key);
	if (chain)
		free_chain(chain, *ret_n);
	return false;
}

/*
 * api_page.c - the page, and the API's reference: files of web/dist and schema, compiled into the
 * binary.
 *
 * Names under assets/ contain a hash of the content and never change; the page itself is
 * revalidated on each visit. Files that compress well also exist as <name>.gz, made by the build.
 */
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "server/base/embedded.h"
#include "server/base/file/sha256.h"
#include "server/http/http.h"

enum { MAX_NAME = 256, ETAG = 17 };

extern const struct tw_embedded tw_page_files[];

static const struct tw_embedded *find(const char *name)
{
	for (const struct tw_embedded *f = tw_page_files; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static const char *type_of(const char *name)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
	        {".html", "text/html; charset=utf-8"},
	        {".js", "text/javascript; charset=utf-8"},
	        {".css", "text/css; charset=utf-8"},
	        {".svg", "image/svg+xml"},
	        {".png", "image/png"},
	        {".ico", "image/x-icon"},
	        {".json", "application/json"},
	        {".map", "application/json"},
	        {".wasm", "application/wasm"},
	        {".woff2", "font/woff2"},
	        {".txt", "text/plain; charset=utf-8"},
	        {".webmanifest", "application/manifest+json"},
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
		if (strcmp(dot, types[i].suffix) == 0)
			return types[i].type;
	return "application/octet-stream";
}

static void hash_of(const struct tw_embedded *f, char out[ETAG])
{
	uint8_t hash[32];
	char hex[TW_SHA256_HEX];

	(void)gnutls_hash_fast(GNUTLS_DIG_SHA256, f->data, f->len, hash);
	tw_sha256_hex(hash, hex);
	memcpy(out, hex, ETAG - 1); /* a prefix identifies the version */
	out[ETAG - 1] = '\0';
}

static enum tw_status send_file(
        struct tw_req *r, int http, const struct tw_embedded *f, struct tw_err *err)
{
	bool forever = strncmp(f->name, "assets/", 7) == 0;
	const struct tw_embedded *gz;
	char name[MAX_NAME];
	char etag[ETAG];

	if (forever) {
		tw_req_set_header(r, "Cache-Control", "public, max-age=31536000, immutable");
	} else {
		hash_of(f, etag);
		tw_req_set_header(r, "Cache-Control", "no-cache");
		if (http == 200 && tw_req_reply_unchanged(r, etag))
			return TW_OK;
	}
	(void)snprintf(name, sizeof name, "%s.gz", f->name);
	gz = find(name);
	if (gz)
		tw_req_set_header(r, "Vary", "Accept-Encoding");
	if (gz && tw_req_accepts(r, "gzip")) {
		tw_req_set_header(r, "Content-Encoding", "gzip");
		return tw_req_reply_static(r, http, type_of(f->name), gz->data, gz->len, err);
	}
	return tw_req_reply_static(r, http, type_of(f->name), f->data, f->len, err);
}

/* Built without npm: the response says how to build the page. */
static enum tw_status not_built(struct tw_req *r, struct tw_err *err)
{
	static const char page[] =
	        "<!doctype html><html lang=\"en\"><meta"
	        " charset=\"utf-8\"><title>tracewell</title><h1>The page was not"
	        " built</h1><p>This server answers its API, but its page is missing: run"
	        " <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code> and build"
	        " the server again, or use <code>./deploy/run</code>, which does both.";

	return tw_req_reply_static(r, 200, "text/html; charset=utf-8", page, sizeof page - 1, err);
}

/* The page's own paths, by their first segment, as in web/src/app/pages.ts. */
static bool is_view(const char *path)
{
	static const char *const views[] = {"", "traces", "builds", "keys", "signin", "people",
	        "account", "audit", "capture", "source", "compare", "regressions", "search", "anrs",
	        "locks", "inbox", "health", "quarantine", "retention", "fleet", "detectors",
	        "notifications", "webhooks" /* its earlier address */};
	size_t len = strcspn(path, "/");

	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		if (strlen(views[i]) == len && memcmp(views[i], path, len) == 0)
			return true;
	return false;
}

/* Whether a browser navigates to the path, rather than a program or a page that loads a file. */
static bool is_visit(const struct tw_req *r)
{
	return tw_req_media_weight(r, "text/html") > 0;
}

static enum tw_status page(struct tw_req *r, struct tw_err *err)
{
	const char *path = tw_req_path(r, "*");
	const struct tw_embedded *f = path && *path ? find(path) : NULL;
	bool there;

	if (!path)
		return tw_oom(err);
	if (f)
		return send_file(r, 200, f, err);
	there = is_view(path);
	f = find("index.html");
	if (!there && (!f || !is_visit(r) || strncmp(path, "api/", 4) == 0))
		return tw_fail(err, TW_NOT_FOUND, "no such path; /api/reference lists the API");
	/* the page shows that the path is unknown */
	return f ? send_file(r, there ? 200 : 404, f, err) : not_built(r, err);
}

const struct tw_route tw_routes_page[] = {
        TW_ROUTE("GET", "/{*}", TW_NEED_PUBLIC, "The page and its files", .any_params = true,
                .on_loop = true, .end = page),
        {0},
};

/* The API's reference as a page, generated from its description by the build
 * (schema/reference.py). */
extern const struct tw_embedded tw_reference_files[]; /* reference.html, reference.css */

static enum tw_status send(
        struct tw_req *r, const struct tw_embedded *f, const char *type, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st;

	tw_req_set_header(r, "Cache-Control", "no-cache");
	tw_buf_init(&out, f->len);
	(void)tw_buf_add(&out, f->data, f->len);
	st = tw_req_reply_buf(r, 200, type, true, &out, err);
	tw_buf_done(&out);
	return st;
}

static enum tw_status reference(struct tw_req *r, struct tw_err *err)
{
	return send(r, &tw_reference_files[0], "text/html; charset=utf-8", err);
}

static enum tw_status style(struct tw_req *r, struct tw_err *err)
{
	return send(r, &tw_reference_files[1], "text/css; charset=utf-8", err);
}

const struct tw_route tw_routes_reference[] = {
        TW_ROUTE("GET", "/api/reference", TW_NEED_PUBLIC, "API reference as a page",
                .any_params = true, .end = reference),
        TW_ROUTE("GET", "/api/reference.css", TW_NEED_PUBLIC,
                "The style sheet of the API reference", .any_params = true, .on_loop = true,
                .end = style),
        {0},
};

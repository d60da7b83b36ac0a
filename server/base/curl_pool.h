/*
 * curl_pool.h - idle libcurl handles, which keep their connections for later requests.
 *
 * Thread: any.
 */
#ifndef TW_CURL_POOL_H
#define TW_CURL_POOL_H

#include <curl/curl.h>
#include <pthread.h>

enum { TW_CURL_POOL_MAX = 32 };

struct tw_curl_pool {
	pthread_mutex_t lock;
	CURL *idle[TW_CURL_POOL_MAX];
	size_t n, most; /* idle handles; further ones are closed */
};

static inline void tw_curl_pool_init(struct tw_curl_pool *p, size_t most)
{
	(void)pthread_mutex_init(&p->lock, NULL);
	p->n = 0;
	p->most = most < TW_CURL_POOL_MAX ? most : TW_CURL_POOL_MAX;
}

static inline void tw_curl_pool_done(struct tw_curl_pool *p)
{
	while (p->n)
		curl_easy_cleanup(p->idle[--p->n]);
	(void)pthread_mutex_destroy(&p->lock);
}

/* A handle without options; NULL if memory is short. */
static inline CURL *tw_curl_pool_take(struct tw_curl_pool *p)
{
	CURL *curl = NULL;

	(void)pthread_mutex_lock(&p->lock);
	if (p->n)
		curl = p->idle[--p->n];
	(void)pthread_mutex_unlock(&p->lock);
	return curl ? curl : curl_easy_init();
}

static inline void tw_curl_pool_return(struct tw_curl_pool *p, CURL *curl)
{
	curl_easy_reset(curl); /* keeps connections */
	(void)pthread_mutex_lock(&p->lock);
	if (p->n < p->most) {
		p->idle[p->n++] = curl;
		curl = NULL;
	}
	(void)pthread_mutex_unlock(&p->lock);
	if (curl)
		curl_easy_cleanup(curl);
}

#endif

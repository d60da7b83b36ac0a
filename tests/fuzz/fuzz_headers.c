/* Other texts of a request: Accept-Encoding, and tickets in a path, selected by the first byte.  A
 * chosen encoding is accepted by the client, and only the signed text is a valid ticket. */
#include <string.h>

#include "fuzz.h"
#include "server/auth/ticket.h"
#include "server/http/http_int.h"

enum { TEXT_BYTES = 4096, NOW_MS = 1000 };

static void check_coding(const char *text)
{
	enum tw_coding c = tw_coding_choose(text);
	bool any = false;

	for (int k = TW_CODING_IDENTITY; k <= TW_CODING_ZSTD; k++)
		any = any || tw_coding_accepted(text, (enum tw_coding)k);
	FUZZ_CHECK(!any || tw_coding_accepted(text, c));
	FUZZ_CHECK(tw_coding_name(c));
}

static void check_ticket(const char *text)
{
	static const uint8_t key[TW_TICKET_KEY_BYTES] = "a key that nobody has to know";
	struct tw_ticket sealed = {.expires_ms = 2 * NOW_MS, .project_id = "P"};
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_err err = {0};
	struct tw_ticket t;
	const char *made = NULL;

	FUZZ_CHECK(a);
	FUZZ_CHECK(tw_ticket_open(key, text, NOW_MS, a, &t, &err) != TW_OK && err.msg[0]);
	sealed.target = text;
	if (tw_ticket_sign(key, &sealed, a, &made, &err) == TW_OK) {
		FUZZ_CHECK(tw_ticket_open(key, made, NOW_MS, a, &t, &err) == TW_OK);
		FUZZ_CHECK(strcmp(t.target, text) == 0 && strcmp(t.project_id, "P") == 0);
		FUZZ_CHECK(tw_ticket_open(key, made, 3 * NOW_MS, a, &t, &err) == TW_NO_TOKEN);
	}
	tw_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_BYTES + 1];
	size_t n = size > TEXT_BYTES ? TEXT_BYTES : size;

	if (n == 0)
		return 0;
	memcpy(text, data + 1, n - 1);
	text[n - 1] = '\0';
	if (data[0] & 1)
		check_ticket(text);
	else
		check_coding(text);
	return 0;
}

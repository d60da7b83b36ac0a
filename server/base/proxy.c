#include "server/base/proxy.h"

#include <arpa/inet.h>
#include <string.h>

#include "decoder/base/str.h"

enum { MAPPED = 96 }; /* bits before the IPv4 address in an IPv6 one */

/* "1.2.3.4", "::1", "[::1]", and with a port "1.2.3.4:80", "[::1]:80"; *ret_four: it was IPv4. */
static bool parse_address(struct tw_str s, uint8_t ret[16], bool *ret_four)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char text[INET6_ADDRSTRLEN + 8];
	char *end;

	s = tw_str_trim(s);
	if (s.len == 0 || s.len >= sizeof text)
		return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');
	if (text[0] == '[' && !end)
		return false;
	if (end && (text[0] == '[' || (strchr(text, '.') && !strchr(end + 1, ':'))))
		*end = '\0'; /* remove the port */
	*ret_four = inet_pton(AF_INET, text, ret + 12) == 1;
	if (*ret_four)
		memcpy(ret, mapped, sizeof mapped);
	return *ret_four || inet_pton(AF_INET6, text[0] == '[' ? text + 1 : text, ret) == 1;
}

static enum tw_status parse_range(
        struct tw_str part, struct tw_proxy_range *ret, struct tw_err *err)
{
	struct tw_str rest = part;
	struct tw_str address = tw_str_split(&rest, '/');
	bool has_bits = address.len < part.len;
	bool four = false;
	uint64_t bits = 0;

	if (!parse_address(address, ret->address, &four) ||
	        (has_bits && !tw_str_u64(rest, four ? 32 : 128, &bits)))
		return tw_fail(err, TW_BAD_REQUEST,
		        "trusted-proxies: \"%.*s\" is neither an address nor a network like "
		        "10.0.0.0/8",
		        (int)(part.len < 60 ? part.len : 60), part.ptr);
	ret->bits = has_bits ? (unsigned)bits + (four ? MAPPED : 0) : 128;
	return TW_OK;
}

enum tw_status tw_proxies_parse(const char *text, struct tw_proxies *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	struct tw_proxies p = {.n = 0};
	enum tw_status st = TW_OK;

	while (st == TW_OK && rest.len) {
		struct tw_str part = tw_str_trim(tw_str_split(&rest, ','));

		if (part.len == 0)
			continue;
		if (p.n == TW_PROXIES_MAX)
			return tw_fail(err, TW_BAD_REQUEST, "trusted-proxies: at most %d of them",
			        TW_PROXIES_MAX);
		st = parse_range(part, &p.ranges[p.n++], err);
	}
	if (st == TW_OK)
		*ret = p;
	return st;
}

static bool is_within(const uint8_t address[16], const struct tw_proxy_range *range)
{
	unsigned whole = range->bits / 8;
	unsigned mask = 0xff00u >> range->bits % 8 & 0xff;

	return memcmp(address, range->address, whole) == 0 &&
	       (mask == 0 || (address[whole] & mask) == (range->address[whole] & mask));
}

static bool is_trusted(const struct tw_proxies *p, const uint8_t address[16])
{
	for (size_t i = 0; i < p->n; i++)
		if (is_within(address, &p->ranges[i]))
			return true;
	return false;
}

bool tw_proxies_trust(const struct tw_proxies *p, const char *address)
{
	uint8_t bytes[16];
	bool four;

	return parse_address(tw_str_of(address), bytes, &four) && is_trusted(p, bytes);
}

/* Removes the part after the last comma from *rest and returns it. */
static struct tw_str cut_last(struct tw_str *rest)
{
	size_t at = rest->len;
	struct tw_str last;

	while (at && rest->ptr[at - 1] != ',')
		at--;
	last = (struct tw_str){rest->ptr + at, rest->len - at};
	rest->len = at ? at - 1 : 0;
	return last;
}

/* An IPv4-mapped IPv6 address. */
static bool is_mapped(const uint8_t a[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a, mapped, sizeof mapped) == 0;
}

bool tw_proxies_client(const struct tw_proxies *p, const char *chain, char ret[INET6_ADDRSTRLEN],
        bool *ret_trusted)
{
	struct tw_str rest = tw_str_of(chain);
	uint8_t bytes[16];
	bool found = false, trusted = true, four = false;

	while (trusted && rest.len && parse_address(cut_last(&rest), bytes, &four)) {
		trusted = is_trusted(p, bytes);
		/* like direct connections, so that all clients are counted in one form */
		four = is_mapped(bytes);
		(void)inet_ntop(four ? AF_INET : AF_INET6, four ? bytes + 12 : bytes, ret,
		        INET6_ADDRSTRLEN);
		found = true;
	}
	if (found)
		*ret_trusted = trusted;
	return found;
}

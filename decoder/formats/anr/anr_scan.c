#include "decoder/formats/anr/anr_scan.h"

#define SECOND_NS INT64_C(1000000000)

bool tw_anr_eat(struct tw_str *s, const char *literal)
{
	size_t n = strlen(literal);

	if (s->len < n || memcmp(s->ptr, literal, n) != 0)
		return false;
	*s = tw_str_from(*s, n);
	return true;
}

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

static bool eat_digits(struct tw_str *s, unsigned base, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	while (n < s->len && digit_of(s->ptr[n]) < base) {
		unsigned d = digit_of(s->ptr[n++]);

		if (v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	}
	if (n == 0)
		return false;
	*s = tw_str_from(*s, n);
	*ret = v;
	return true;
}

bool tw_anr_eat_number(struct tw_str *s, uint64_t *ret)
{
	return eat_digits(s, 10, ret);
}

bool tw_anr_eat_hex(struct tw_str *s, uint64_t *ret)
{
	struct tw_str rest = *s;

	(void)tw_anr_eat(&rest, "0x");
	if (!eat_digits(&rest, 16, ret))
		return false;
	*s = rest;
	return true;
}

bool tw_anr_eat_signed(struct tw_str *s, int32_t *ret)
{
	struct tw_str rest = *s;
	bool minus = tw_anr_eat(&rest, "-");
	uint64_t v;

	if (!eat_digits(&rest, 10, &v) || v > INT32_MAX)
		return false;
	*ret = minus ? -(int32_t)v : (int32_t)v;
	*s = rest;
	return true;
}

struct tw_str tw_anr_take_word(struct tw_str *s)
{
	struct tw_str rest = tw_anr_skip_blanks(*s);
	size_t n = 0;

	while (n < rest.len && rest.ptr[n] != ' ' && rest.ptr[n] != '\t')
		n++;
	*s = tw_str_from(rest, n);
	return (struct tw_str){rest.ptr, n};
}

/* Exactly `digits` digits, followed by `suffix`. */
static bool eat_part(struct tw_str *s, unsigned digits, const char *suffix, unsigned *ret)
{
	struct tw_str part = {s->ptr, s->len < digits ? s->len : digits};
	uint64_t v;

	if (part.len < digits || !tw_str_u64(part, 9999, &v))
		return false;
	*s = tw_str_from(*s, digits);
	*ret = (unsigned)v;
	return tw_anr_eat(s, suffix);
}

/* Days since 2000-03-01; years start in March, so that the leap day is last. */
static int64_t day_number(unsigned year, unsigned month, unsigned day)
{
	int64_t y = (int64_t)year - 2000 - (month < 3);
	int64_t m = (month + 9) % 12;
	int64_t leaps = y >= 0 ? y / 4 - y / 100 + y / 400 : -1;

	return y * 365 + leaps + (m * 306 + 5) / 10 + day - 1;
}

static int64_t eat_fraction(struct tw_str *s)
{
	int64_t unit = SECOND_NS / 10;
	int64_t ns = 0;
	struct tw_str rest = *s;

	if (!tw_anr_eat(&rest, ".") && !tw_anr_eat(&rest, ","))
		return 0;
	for (; rest.len && digit_of(rest.ptr[0]) < 10; rest = tw_str_from(rest, 1)) {
		ns += unit * digit_of(rest.ptr[0]);
		unit /= 10;
	}
	*s = rest;
	return ns;
}

/* hh:mm:ss */
static bool eat_clock(struct tw_str *s, unsigned *ret_seconds)
{
	unsigned hour, minute, second;

	if (!eat_part(s, 2, ":", &hour) || !eat_part(s, 2, ":", &minute) ||
	        !eat_part(s, 2, "", &second))
		return false;
	*ret_seconds = hour * 3600 + minute * 60 + second;
	return hour < 24 && minute < 60 && second <= 60;
}

bool tw_anr_eat_date(struct tw_str *s, int64_t *ret_ns)
{
	struct tw_str rest = *s;
	unsigned year = 2000, month, day, seconds;

	if (rest.len > 4 && rest.ptr[4] == '-' && !eat_part(&rest, 4, "-", &year))
		return false;
	if (!eat_part(&rest, 2, "-", &month) || !eat_part(&rest, 2, " ", &day) ||
	        !eat_clock(&rest, &seconds))
		return false;
	if (year < 2000 || year > 2200 || month - 1 > 11 || day - 1 > 30)
		return false;
	/* the 60 days make times in January and February of 2000 positive */
	*ret_ns = ((day_number(year, month, day) + 60) * 86400 + seconds) * SECOND_NS;
	*ret_ns += eat_fraction(&rest);
	*s = rest;
	return true;
}

struct tw_str tw_anr_skip_blanks(struct tw_str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
		s = tw_str_from(s, 1);
	return s;
}

size_t tw_anr_find(struct tw_str s, const char *literal)
{
	return tw_str_find(s, tw_str_of(literal));
}

size_t tw_anr_find_last(struct tw_str s, const char *literal)
{
	return tw_str_find_last(s, tw_str_of(literal));
}

bool tw_anr_number_after(struct tw_str s, const char *key, uint64_t *ret)
{
	size_t at = tw_anr_find(s, key);
	struct tw_str rest;

	if (at == s.len)
		return false;
	rest = tw_str_from(s, at + strlen(key));
	return tw_anr_eat_number(&rest, ret);
}

#include "server/cli/cli_term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/clock.h"

enum { BAR = 24, DRAW_EVERY_MS = 100, RATE_FROM_MS = 1000, MAX_COLUMNS = 1000 };

bool tw_term_is(FILE *f)
{
	const char *term = getenv("TERM");

	return isatty(fileno(f)) == 1 && term && *term && strcmp(term, "dumb") != 0;
}

const char *tw_term_paint(FILE *f, enum tw_paint paint)
{
	static const char *const codes[] = {[TW_PLAIN] = "\033[0m",
	        [TW_RED] = "\033[31m",
	        [TW_GREEN] = "\033[32m",
	        [TW_YELLOW] = "\033[33m",
	        [TW_DIM] = "\033[2m",
	        [TW_BOLD] = "\033[1m"};
	const char *no = getenv("NO_COLOR");

	return (no && *no) || !tw_term_is(f) ? "" : codes[paint];
}

struct tw_term_size tw_term_size(FILE *f)
{
	struct winsize w = {0};

	if (ioctl(fileno(f), TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
		return (struct tw_term_size){80, 24};
	return (struct tw_term_size){w.ws_col < MAX_COLUMNS ? w.ws_col : MAX_COLUMNS, w.ws_row};
}

static unsigned count(const char *text, size_t left)
{
	unsigned n = 0;

	while (left > 0) {
		size_t len = tw_utf8_len(text, left);

		len = len ? len : 1;
		text += len;
		left -= len;
		n++;
	}
	return n;
}

void tw_term_text(struct tw_buf *out, struct tw_str text, unsigned columns)
{
	unsigned n = count(text.ptr, text.len), shown = columns && n > columns ? columns - 1 : n;

	for (unsigned i = 0; i < shown; i++) {
		size_t len = tw_utf8_len(text.ptr, text.len);
		bool bad = len == 0 || tw_utf8_is_control(text.ptr, len);

		len = len ? len : 1;
		if (bad)
			(void)tw_buf_add(out, "\xef\xbf\xbd", 3);
		else
			(void)tw_buf_add(out, text.ptr, len);
		text = tw_str_from(text, len);
	}
	if (shown < n)
		(void)tw_buf_add(out, "\xe2\x80\xa6", 3);
	for (; n < columns; n++)
		(void)tw_buf_add_u8(out, ' ');
}

void tw_term_print(const char *text)
{
	struct tw_buf out;

	tw_buf_init(&out, SIZE_MAX / 2);
	tw_term_text(&out, tw_str_of(text), 0);
	(void)fwrite(out.data, 1, out.len, stdout);
	tw_buf_done(&out);
}

const char *tw_term_time(char *out, size_t cap, int64_t ns)
{
	double v = (double)ns;

	if (v >= 999.5e6)
		(void)snprintf(out, cap, v < 99.95e9 ? "%.2f s" : "%.0f s", v / 1e9);
	else if (v >= 999.5e3)
		(void)snprintf(out, cap, v < 99.95e6 ? "%.1f ms" : "%.0f ms", v / 1e6);
	else
		(void)snprintf(out, cap, "%.0f us", v / 1e3);
	return out;
}

/* --- progress --- */

struct tw_progress tw_progress_of(const char *what)
{
	return (struct tw_progress){.what = tw_term_is(stderr) ? what : NULL};
}

static void draw_bar(uint64_t done, uint64_t total)
{
	char bar[BAR + 1];
	uint64_t part = done >= total ? BAR : (uint64_t)((double)done / (double)total * BAR);

	memset(bar, '.', BAR);
	memset(bar, '#', part);
	bar[BAR] = '\0';
	(void)fprintf(stderr, " [%s%s%s] %3d%%  %" PRIu64 " of %" PRIu64,
	        tw_term_paint(stderr, TW_GREEN), bar, tw_term_paint(stderr, TW_PLAIN),
	        (int)(done >= total ? 100 : (double)done * 100 / (double)total), done, total);
}

static void draw_bytes(uint64_t bytes, int64_t ms)
{
	if (bytes)
		(void)fprintf(stderr, "  %.1f MB", (double)bytes / 1e6);
	if (bytes && ms >= RATE_FROM_MS)
		(void)fprintf(stderr, ", %.1f MB/s", (double)bytes / 1e3 / (double)ms);
}

void tw_progress_at(struct tw_progress *p, uint64_t done, uint64_t bytes)
{
	int64_t now = p->what ? tw_monotonic_ms() : 0;

	if (!p->what || now < p->next_ms)
		return;
	if (p->begun_ms == 0)
		p->begun_ms = now;
	p->next_ms = now + DRAW_EVERY_MS;
	p->drawn = true;
	(void)fprintf(stderr, "\r%s", p->what);
	if (p->total)
		draw_bar(done, p->total);
	else if (done)
		(void)fprintf(stderr, " %" PRIu64, done);
	draw_bytes(bytes, now - p->begun_ms);
	(void)fputs("\033[K", stderr);
	(void)fflush(stderr);
}

void tw_progress_clear(struct tw_progress *p)
{
	if (!p->drawn)
		return;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	p->drawn = false;
	p->next_ms = 0;
}

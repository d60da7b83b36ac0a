#include "server/ops/doctor.h"

#include <stdarg.h>
#include <stdio.h>

const char *tw_doctor_name(enum tw_doctor_level l)
{
	static const char *const words[] = {"good", "note", "wrong"};

	return words[l];
}

void tw_doctor_report(
        struct tw_doctor *d, enum tw_doctor_level level, const char *what, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	d->wrong += level == TW_DOCTOR_WRONG;
	d->notes += level == TW_DOCTOR_NOTE;
	d->tell(d->arg, level, what, text);
}

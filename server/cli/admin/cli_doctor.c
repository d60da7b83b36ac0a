/* `tracewell doctor`: reports problems of an installation. */
#include <stdio.h>

#include "server/base/config.h"
#include "server/base/storage.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/notify/hook_send.h"
#include "server/ops/doctor.h"

static void print_text(void *arg, enum tw_doctor_level level, const char *what, const char *text)
{
	static const enum tw_paint paints[] = {[TW_DOCTOR_GOOD] = TW_GREEN,
	        [TW_DOCTOR_NOTE] = TW_YELLOW,
	        [TW_DOCTOR_WRONG] = TW_RED};

	(void)arg;
	(void)what;
	(void)printf("%s%s%s: %s\n", tw_term_paint(stdout, paints[level]), tw_doctor_name(level),
	        tw_term_paint(stdout, TW_PLAIN), text);
}

static void print_json(void *arg, enum tw_doctor_level level, const char *what, const char *text)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	(void)arg;
	tw_json_key_text(j, "level", tw_doctor_name(level));
	tw_json_key_text(j, "check", what);
	tw_json_key_text(j, "message", text);
	if (tw_cli_line_end(&line, NULL) != TW_OK)
		(void)fputs("tracewell doctor: the output cannot be written\n", stderr);
}

static int conclude(const struct tw_doctor *d)
{
	if (d->wrong)
		(void)fprintf(stderr, "%u problem%s, %u note%s\n", d->wrong,
		        d->wrong == 1 ? "" : "s", d->notes, d->notes == 1 ? "" : "s");
	else
		(void)fprintf(stderr, "no problems found, %u note%s\n", d->notes,
		        d->notes == 1 ? "" : "s");
	return d->wrong ? TW_EXIT_FAILED : TW_EXIT_OK;
}

int tw_cli_doctor(int argc, char **argv)
{
	struct tw_oidc_config oidc = {.issuer = "", .ca_file = ""};
	struct tw_smtp_settings smtp = {"", "", "", "", ""};
	struct tw_storage storage = {
	        .blobs = "", .endpoint = "", .region = "", .ca_file = "", .credentials_file = ""};
	struct tw_doctor d = {
	        .report = print_text, .oidc = &oidc, .smtp = &smtp, .storage = &storage};
	uint64_t percent = 5;
	bool json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &d.data},
	        {.name = "listen", .value = &d.listen}, {.name = "server", .value = &d.server},
	        {.name = "key", .value = &d.key}, {.name = "tls-cert", .value = &d.tls_cert},
	        {.name = "tls-key", .value = &d.tls_key},
	        {.name = "oidc-issuer", .value = &oidc.issuer},
	        {.name = "oidc-ca-file", .value = &oidc.ca_file},
	        {.name = "oidc-loopback-http", .on = &oidc.loopback_http},
	        {.name = "repositories", .value = &d.repositories},
	        {.name = "public-url", .value = &d.public_url},
	        {.name = "smtp-url", .value = &smtp.url},
	        {.name = "smtp-user", .value = &smtp.user},
	        {.name = "smtp-password-file", .value = &smtp.password_file},
	        {.name = "smtp-ca-file", .value = &smtp.ca_file},
	        {.name = "mail-from", .value = &smtp.from},
	        {.name = "blobs", .value = &storage.blobs},
	        {.name = "s3-endpoint", .value = &storage.endpoint},
	        {.name = "s3-region", .value = &storage.region},
	        {.name = "s3-ca-file", .value = &storage.ca_file},
	        {.name = "s3-credentials-file", .value = &storage.credentials_file},
	        {.name = "s3-virtual-host", .on = &storage.virtual_host},
	        {.name = "min-free", .number = &percent, .most = 99},
	        {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	if (json)
		d.report = print_json;
	d.min_free_percent = (unsigned)percent;
	tw_doctor_machine(&d);
	tw_doctor_tls(&d);
	tw_doctor_data(&d);
	tw_doctor_catalogue(&d);
	tw_doctor_storage(&d);
	tw_doctor_repositories(&d);
	tw_doctor_provider(&d);
	tw_doctor_mail(&d);
	tw_doctor_public(&d);
	tw_doctor_server(&d);
	return conclude(&d);
}

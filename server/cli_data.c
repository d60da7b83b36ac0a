#include "cli_data.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "audit.h"
#include "data_catalogue.h"

/* Where no server has told the folder yet, the setting of one does. */
static const char *address(void)
{
	const char *given = getenv("TRACEWELL_CATALOG");

	return given ? given : "";
}

enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	enum tw_status st;

	if (!tw_data_catalogue_is_there(data))
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "%.120s is no data folder of a server: it has no catalogue.db nor "
		        "catalogue.url",
		        data);
	tw_actor_set_cli();
	st = tw_blobs_open(data, 0, ret_blobs, err);
	return st == TW_OK ? tw_data_catalogue_open(data, address(), ret_catalogue, err) : st;
}

enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	enum tw_status st;

	tw_actor_set_cli();
	(void)umask(077);
	st = tw_folder_make(data, err);
	return st == TW_OK ? tw_data_catalogue_open(data, address(), ret_catalogue, err) : st;
}

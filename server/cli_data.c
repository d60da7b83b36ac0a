#include "cli_data.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit.h"

enum { PATH_BYTES = 1500 };

enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	if (snprintf(path, sizeof path, "%s/catalogue.db", data) >= (int)sizeof path)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "--data is too long");
	if (access(path, F_OK) != 0)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "%.150s is no data folder of a server: it has no catalogue.db", data);
	tw_actor_set_cli();
	st = tw_blobs_open(data, 0, ret_blobs, err);
	return st == TW_OK ? tw_catalogue_open(path, ret_catalogue, err) : st;
}

enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	if (snprintf(path, sizeof path, "%s/catalogue.db", data) >= (int)sizeof path)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "--data is too long");
	tw_actor_set_cli();
	(void)umask(077);
	st = tw_folder_make(data, err);
	return st == TW_OK ? tw_catalogue_open(path, ret_catalogue, err) : st;
}

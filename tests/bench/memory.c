#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double bench_memory(const char *key)
{
	char line[256];
	double kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtod(line + strlen(key), NULL);
	if (f)
		(void)fclose(f);
	return kb * 1024;
}

void bench_forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "5", 1) != 1)
		(void)fprintf(stderr, "peaks of memory include earlier ones\n");
	if (fd >= 0)
		(void)close(fd);
}

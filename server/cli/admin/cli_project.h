/* cli_project.h - the form of `tracewell export` that takes a whole project. */
#ifndef TW_CLI_PROJECT_H
#define TW_CLI_PROJECT_H

/* With --project among its arguments. */
int tw_cli_project_export(int argc, char **argv);

#endif

/* cli_project.h - `tracewell export` for a complete project. */
#ifndef TW_CLI_PROJECT_H
#define TW_CLI_PROJECT_H

/* Called if --project is among the arguments. */
int tw_cli_project_export(int argc, char **argv);

#endif

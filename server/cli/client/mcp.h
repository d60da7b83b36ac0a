/*
 * mcp.h - the Model Context Protocol over the API: what an assistant may ask of a server,
 * read-only.
 *
 * A message is a JSON-RPC 2.0 object.  Tools (mcp.def) are GETs of the API; their input schemas are
 * made from the API's own description, so that they cannot differ from it.  Learned from the
 * protocol's specification of 2025-06-18; older versions back to 2024-11-05 are spoken too.
 * It reads and writes nothing itself.  Thread: one.
 */
#ifndef TW_MCP_H
#define TW_MCP_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_MCP_MESSAGE_BYTES = 1 << 20 };

/* Asks the server for a path with its query, escaped; json_decref of the answer is owed. */
typedef enum tw_status tw_mcp_get(void *arg, const char *path, json_t **ret, struct tw_err *err);

struct tw_mcp {
	json_t *openapi; /* the API's description; borrowed */
	size_t most; /* bytes of an answer that is passed on; a longer one is refused in words */
	tw_mcp_get *get;
	void *arg;
};

/* One message.  *ret is the answer, owed a json_decref, or NULL for what wants none.  What is wrong
 * with the message is told in the answer; TW_NOMEM is all that fails. */
enum tw_status tw_mcp_answer(const struct tw_mcp *m, struct tw_str message, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif

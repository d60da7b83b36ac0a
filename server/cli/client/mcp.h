/*
 * mcp.h - the Model Context Protocol on top of the API: read-only tools for an assistant.
 *
 * A message is a JSON-RPC 2.0 object.  Tools (mcp.def) are GETs of the API; their input schemas are
 * generated from the API's own description, so that they cannot differ from it.  Learned from the
 * protocol's specification of 2025-06-18; older versions back to 2024-11-05 are supported too. It
 * has no input or output itself.  Thread: one.
 */
#ifndef TW_MCP_H
#define TW_MCP_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_MCP_MESSAGE_BYTES = 1 << 20 };

/* Requests a path with its query, escaped; the caller frees the response with json_decref. */
typedef enum tw_status tw_mcp_get(void *arg, const char *path, json_t **ret, struct tw_err *err);

struct tw_mcp {
	json_t *openapi; /* the API's description; borrowed */
	size_t most; /* maximum bytes of a response; a longer one is replaced by an error message */
	tw_mcp_get *get;
	void *arg;
};

/* Handles one message.  *ret is the response, which the caller frees with json_decref, or NULL if
 * none is expected.  Errors in the message are in the response; the only failure is TW_NOMEM. */
enum tw_status tw_mcp_handle(const struct tw_mcp *m, struct tw_str message, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif

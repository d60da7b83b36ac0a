#include "decoder/limits.h"

struct tw_limits tw_limits_default(void)
{
	return (struct tw_limits){
	        .max_decoded_bytes = (uint64_t)4 << 30,
	        .max_ratio = 200,
	        .max_nesting = 3,
	        .max_window_log = 27, /* the default limit of zstd's own tools */
	        .max_slices = (uint64_t)64 << 20,
	        .max_depth = 4096,
	        .max_threads = 4096,
	        .max_methods = 4 << 20,
	        .max_name_bytes = 4096,
	        .max_notes = 1 << 20,
	        .max_tree_nodes = 512 << 10,
	        .max_memory_bytes = (uint64_t)1536 << 20,
	};
}

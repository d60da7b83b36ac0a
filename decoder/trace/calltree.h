/*
 * calltree.h - a thread's merged call tree, and its stored form.
 *
 * Calls with the same path of methods are one node.  Node 0 is the thread itself (no method); nodes
 * are in pre-order, siblings by falling total time.  The sum of self_ns over all nodes equals the
 * sum of the durations of the thread's roots.
 * Stored form: schema/columns.md, section "A call tree".
 */
#ifndef TW_CALLTREE_H
#define TW_CALLTREE_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/trace/columns.h"

#define TW_NO_METHOD UINT32_MAX

struct tw_tree_node {
	uint32_t parent;  /* index; of node 0: 0 */
	uint32_t method;  /* index into the trace's method table; TW_NO_METHOD for node 0 */
	uint32_t subtree; /* nodes in this subtree including this one: the next sibling is at +
	                   * subtree */
	uint32_t depth;   /* node 0 has 0 */
	uint64_t count;   /* calls */
	int64_t total_ns;
	int64_t self_ns;
	int64_t cpu_ns; /* -1: not known */
	int64_t max_ns; /* longest single call */
};

struct tw_tree {
	struct tw_tree_node *nodes; /* in the arena */
	uint32_t n;
};

/* Builds a tree from slices in pre-order.  The trace writer uses it for complete threads, queries
 * for time ranges (clip the slices before adding). */
/* A tree with max_nodes accepts no new paths: the time of calls on them stays in the self time of
 * the deepest existing node. */
struct tw_tree_builder;
struct tw_tree_builder *tw_tree_builder_new(uint64_t max_nodes);
struct tw_tree_builder *tw_tree_builder_free(struct tw_tree_builder *b);
/* Begins another tree in the memory of the last one. */
void tw_tree_builder_reset(struct tw_tree_builder *b, uint64_t max_nodes);
/* Makes space for this many nodes before any is added; memory is touched only as they are added.
 * Otherwise, and past them, the space doubles, which copies the nodes.  False: out of memory;
 * nothing changed. */
bool tw_tree_builder_reserve(struct tw_tree_builder *b, uint64_t nodes);
/* Slices of one thread in pre-order; depth may rise by at most one. */
enum tw_status tw_tree_builder_add(struct tw_tree_builder *b, const struct tw_slice *s, size_t n);
/* Enters the nodes of slices that are open at the begin of the next ones, outermost first, without
 * counting them.  These nodes have no calls and no time until the trees are merged. */
enum tw_status tw_tree_builder_enter(struct tw_tree_builder *b, const struct tw_slice *s, size_t n);
/* Enters the node of a call as tw_tree_builder_add does, but adds only time to it. */
enum tw_status tw_tree_builder_add_time(
        struct tw_tree_builder *b, const struct tw_slice *s, int64_t ns);
/* Adds all nodes of t below its node 0, as if their calls had been added. */
enum tw_status tw_tree_builder_add_tree(struct tw_tree_builder *b, const struct tw_tree *t);
/* The same for a tree that is still being built; `from` can be extended afterwards. */
enum tw_status tw_tree_builder_add_grown(
        struct tw_tree_builder *b, const struct tw_tree_builder *from);
/* Nodes so far, including node 0. */
uint32_t tw_tree_builder_nodes(const struct tw_tree_builder *b);
/* Calls that did not fit. */
uint64_t tw_tree_builder_clipped(const struct tw_tree_builder *b);
/* Ends building; nothing can be added afterwards. */
enum tw_status tw_tree_builder_end(struct tw_tree_builder *b);
/* After tw_tree_builder_end: the next nodes of the sorted tree, at most `max`, and the longest call
 * among the children of each; without `parent` and `subtree`.  0 at the end. */
uint32_t tw_tree_builder_read(struct tw_tree_builder *b, struct tw_tree_node *nodes,
        int64_t *longest_callee_ns, uint32_t max);
/* The complete sorted tree; nothing can be added afterwards. */
enum tw_status tw_tree_builder_finish(
        struct tw_tree_builder *b, struct tw_arena *a, struct tw_tree *ret);
/* The same into an array of tw_tree_builder_nodes elements. */
enum tw_status tw_tree_builder_finish_into(struct tw_tree_builder *b, struct tw_tree_node *nodes);

/* The tree as it was built, for readers that need few of its nodes: without sorting it, and without
 * a second array of nodes.  Nodes have the numbers below tw_tree_builder_nodes, the thread itself
 * 0; nothing can be added afterwards. */
enum tw_status tw_tree_builder_link(struct tw_tree_builder *b);
struct tw_linked_node {
	uint32_t method, subtree;
	uint64_t count;
	int64_t total_ns, max_ns;
};
struct tw_linked_node tw_tree_builder_linked(const struct tw_tree_builder *b, uint32_t node);
/* Returns the number of children, in no particular order. */
uint32_t tw_tree_builder_children(
        const struct tw_tree_builder *b, uint32_t node, const uint32_t **ret);

enum tw_status tw_tree_encode(const struct tw_tree *t, struct tw_buf *out);
/* The same node by node, in pre-order, for one tree after another. */
struct tw_tree_encoder;
struct tw_tree_encoder *tw_tree_encoder_new(void);
struct tw_tree_encoder *tw_tree_encoder_free(struct tw_tree_encoder *e);
/* A tree of at most max_nodes, including node 0. */
enum tw_status tw_tree_encoder_begin(struct tw_tree_encoder *e, uint32_t max_nodes);
/* The next nodes, as from tw_tree_builder_read; `parent` and `subtree` are not used. */
void tw_tree_encoder_add(struct tw_tree_encoder *e, const struct tw_tree_node *nodes,
        const int64_t *longest_callee_ns, uint32_t n);
enum tw_status tw_tree_encoder_end(struct tw_tree_encoder *e, struct tw_buf *out);
/* As tw_chunk_cuts. */
size_t tw_tree_cuts(const uint8_t *payload, size_t len, size_t cuts[TW_CHUNK_CUTS]);
/* Accepts any bytes: TW_CORRUPT if invalid. */
enum tw_status tw_tree_decode(const uint8_t *p, size_t len, struct tw_arena *a, struct tw_tree *ret,
        struct tw_err *err) TW_MUST_USE;
/* The same in two steps, the number of nodes first, for memory that several threads share. */
enum tw_status tw_tree_decode_size(
        const uint8_t *p, size_t len, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_tree_decode_into(
        const uint8_t *p, size_t len, struct tw_tree_node *nodes, struct tw_err *err) TW_MUST_USE;

#endif

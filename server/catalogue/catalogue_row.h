/* catalogue_row.h - a trace's row, read by catalogue_trace.c and listed by catalogue_list.c. */
#ifndef TW_CATALOGUE_ROW_H
#define TW_CATALOGUE_ROW_H

#include "server/catalogue/catalogue_internal.h"

/* It is the earliest trace of its ANR's group. */
#define TW_TRACE_IS_FIRST                                                                          \
	"anr<>'' AND NOT EXISTS (SELECT 1 FROM trace o WHERE o.project_id=trace.project_id"        \
	" AND o.anr=trace.anr AND o.anr<>'' AND (o.created_ms,o.trace_id)<"                        \
	"(trace.created_ms,trace.trace_id))"

#define TW_TRACE_TAGS                                                                              \
	"(SELECT " TW_EITHER(                                                                      \
	        "json_group_array(tag)", "coalesce(json_agg(tag ORDER BY tag),'[]')::text")
/* In the order that tw_catalogue_read_row expects. */
#define TW_TRACE_COLUMNS                                                                           \
	"trace_id,project_id,key_id,state,created_ms,ready_ms,tries,upload_bytes,"                 \
	"app,version_name,version_code,build_id,mapping_id,device,os,abi,process,scenario,"        \
	"session_id,uuid,labels,pid,started_ms,"                                                   \
	"format,decoder_version,slices,threads,methods,max_depth,duration_ns,input_bytes,"         \
	"decoded_bytes,file_bytes,losses,repairs,error_status,error_message,error_offset,"         \
	"title,pinned,annotations," TW_TRACE_TAGS " FROM trace_tag t WHERE"                        \
	" t.project_id=trace.project_id AND "                                                      \
	"t.trace_id=trace.trace_id),upload_kept,kept_for,anr," TW_TRACE_IS_FIRST ",folded"

/* The current row of a query of TW_TRACE_COLUMNS, with strings in the arena; false: out of
 * memory. */
bool tw_catalogue_read_row(
        const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *ret);

#endif

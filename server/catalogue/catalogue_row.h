/*
 * catalogue_row.h - a trace's row, as catalogue_trace.c reads it and catalogue_list.c lists it.
 */
#ifndef TW_CATALOGUE_ROW_H
#define TW_CATALOGUE_ROW_H

#include "server/catalogue/catalogue_internal.h"

/* Nothing of its ANR's group came before it. */
#define TW_TRACE_IS_FIRST                                                                          \
	"anr<>'' AND NOT EXISTS (SELECT 1 FROM trace o WHERE o.project_id=trace.project_id"        \
	" AND o.anr=trace.anr AND o.anr<>'' AND (o.created_ms,o.trace_id)<"                        \
	"(trace.created_ms,trace.trace_id))"

#define TW_TRACE_TAGS                                                                              \
	"(SELECT " TW_EITHER(                                                                      \
	        "json_group_array(tag)", "coalesce(json_agg(tag ORDER BY tag),'[]')::text")
/* In the order in which tw_catalogue_read_row takes them. */
#define TW_TRACE_COLUMNS                                                                           \
	"trace_id,project_id,key_id,state,created_ms,ready_ms,tries,upload_bytes,"                 \
	"app,version_name,version_code,build_id,mapping_id,device,os,abi,process,scenario,"        \
	"session_id,uuid,labels,pid,started_ms,"                                                   \
	"format,decoder_version,slices,threads,methods,max_depth,duration_ns,input_bytes,"         \
	"decoded_bytes,file_bytes,losses,repairs,error_status,error_message,error_offset,"         \
	"title,pinned,annotations," TW_TRACE_TAGS " FROM trace_tag t WHERE"                        \
	" t.project_id=trace.project_id AND "                                                      \
	"t.trace_id=trace.trace_id),upload_kept,kept_for,anr," TW_TRACE_IS_FIRST ",folded"

/* The current row of a query of TW_TRACE_COLUMNS, strings in the arena; false: no memory. */
bool tw_catalogue_read_row(
        const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *ret);

#endif

/*
 * catalogue_row.h - a trace's row, as catalogue_trace.c reads it and catalogue_list.c lists it.
 */
#ifndef TW_CATALOGUE_ROW_H
#define TW_CATALOGUE_ROW_H

#include "catalogue_internal.h"

/* In the order in which tw_catalogue_read_row takes them. */
#define TW_TRACE_COLUMNS                                                                           \
	"trace_id,project_id,key_id,state,created_ms,ready_ms,tries,upload_bytes,"                 \
	"app,version_name,version_code,build_id,mapping_id,device,os,abi,process,scenario,"        \
	"session_id,uuid,labels,pid,started_ms,"                                                   \
	"format,decoder_version,slices,threads,methods,max_depth,duration_ns,input_bytes,"         \
	"decoded_bytes,file_bytes,losses,repairs,error_status,error_message,error_offset"

/* The current row of a query of TW_TRACE_COLUMNS, strings in the arena; false: no memory. */
bool tw_catalogue_read_row(
        const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *ret);

#endif

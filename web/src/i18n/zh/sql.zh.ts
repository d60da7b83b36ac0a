// Simplified Chinese; the terms are those of frame.zh.ts.
import type { Fits } from '../language';

const zh = {
	'Methods by self time': '按自身时间排列的方法',
	'Main thread calls over 16 ms': '主线程上超过 16 ms 的调用',
	'Busy time by thread': '各线程的忙碌时间',
	'Longest call of each method': '每个方法最长的调用',
	'Calls started per 100 ms': '每 100 ms 开始的调用数',
	'A SELECT over the calls of this trace': '对此 Trace 的调用执行 SELECT',
	'Run': '运行',
	'Save as CSV': '保存为 CSV',
	'Examples': '示例',
	'Saved for this project': '本项目已保存',
	'Delete the saved query {name}': '删除已保存的查询 {name}',
	'by {author}, {when}': '{author}，{when}',
	'Save this query': '保存此查询',
	'Name of this query': '查询名称',
	'Saves the query for everyone in this project.': '为本项目的所有人保存此查询。',
	'A saved query or list with that name exists and will be replaced.': '已有同名的查询或列表，将被替换。',
	'Save': '保存',
	'Tables': '表',
	'Times are in nanoseconds. slice.id and parent_id number the calls of the trace. Statements may only read, within the time and memory limits of other queries.': '时间单位为纳秒。slice.id 和 parent_id 是此 Trace 内调用的编号。语句只能读取，时间和内存限制与其他查询相同。',
	'{n} rows': '{n} 行',
	'The first {n} rows': '前 {n} 行',
	'Show this call in the timeline': '在时间线中显示此调用',
	'Show this time in the timeline': '在时间线中显示此时间',
	'Show more': '显示更多',
	'Running the query': '正在运行查询',
	'The query was not run.': '查询未运行。',
	'No rows.': '没有行。',
	'Ctrl+Enter runs': 'Ctrl+Enter 运行',
	'History': '历史记录',
	'Queries run in this browser': '在此浏览器中运行过的查询',
	'Tables and columns': '表和列',
} as const;

export default zh satisfies Fits<typeof zh>;

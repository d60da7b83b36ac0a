// Simplified Chinese; the terms are those of frame.zh.ts.
import type { Fits } from '../language';

const zh = {
	'Pages': '页面',
	'Methods': '方法',
	'Traces': 'Trace',
	'All {n} traces': '全部 {n} 条 Trace',
	'Traces with the label {label}': '带有标签 {label} 的 Trace',
	'All traces': '所有 Trace',
	'ANR groups': 'ANR 分组',
	'{n} reports': '{n} 份报告',
	'Regressions': '劣化',
	'Builds': '构建',
	'Calls': '调用',
	'Calls of {name} by duration': '{name} 的调用，按耗时',
	'Search methods, traces, builds, ANRs': '搜索方法、Trace、构建、ANR',
	'Results': '结果',
	'Not all names could be searched in time.': '未能在时限内搜索全部名称。',
	'Similar methods': '相似的方法',
	'No method has this name. Similar names are shown.': '没有此名称的方法。显示相似的名称。',
	'No matches.': '没有匹配的内容。',
	'In this trace only: close this and press /.': '只在此 Trace 中搜索：关闭后按 /。',
	'↑ ↓ and Enter open. Words are combined; * stands for any text.': '↑ ↓ 选择，Enter 打开。多个词同时匹配；* 代表任意文本。',
	'Search': '搜索',
} as const;

export default zh satisfies Fits<typeof zh>;

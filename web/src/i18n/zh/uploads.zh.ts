// Simplified Chinese; the terms are those of frame.zh.ts.
import type { Fits } from '../language';

const zh = {
	'Files to upload': '要上传的文件',
	'Choose files': '选择文件',
	'Drop trace files anywhere on this page': '把 Trace 文件拖到本页任意位置',
	'Any format tracewell reads, plain or compressed, several at once. A mapping dropped with its traces names their methods, a .so file native frames.': '支持 tracewell 能读取的所有格式，可压缩，可一次拖入多个文件。与 Trace 一起拖入的映射文件会还原其方法名，.so 文件会还原原生帧的名称。',
	'App': '应用',
	'Version': '版本',
	'Scenario': '场景',
	'Device': '设备',
	'Build': '构建',
	'Upload traces': '上传 Trace',
	'Details for these files': '这些文件的信息',
	'Comparisons and regressions need app, version and scenario. They apply to all files sent from this window.': '对比和回归检测需要应用、版本和场景。这些信息用于本窗口上传的所有文件。',
	'Close': '关闭',
	'Send': '发送',
	'Waiting': '等待中',
	'Uploading, {percent} %': '正在上传，{percent} %',
	'Storing': '正在保存',
	'Decoding': '正在解码',
	'Reading the mapping': '正在读取映射文件',
	'Reading the symbols': '正在读取符号',
	'Names native frames of build id {id}': '已用于还原 build id 为 {id} 的原生帧',
	'Which build is this mapping of?': '这个映射文件属于哪个构建？',
	'Failed': '失败',
	'Ready': '就绪',
	'In use for build {build}': '已用于构建 {build}',
	'Dismiss {file}': '移除 {file}',
	'Progress of {file}': '{file} 的进度',
	'Try again': '重试',
	'{n} uploads in progress': '{n} 个文件正在上传',
	'Uploads': '上传',
	'Clear': '清除',
} as const;

export default zh satisfies Fits<typeof zh>;

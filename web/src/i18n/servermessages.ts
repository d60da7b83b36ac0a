// The server's messages in the language of the page: loaded with the first of them.
import { messageTranslator } from './messagematch';
import { refusals } from './zh/server.zh';
import { pieces, traceMessages } from './zh/servertrace.zh';

export const sentences = { ...refusals, ...traceMessages };
export { pieces };
export const translate = messageTranslator(sentences, pieces);

// The server's sentences in the language of the page, with what finds them: loaded with the first of them.
import { sayings } from './sayings';
import { refusals } from './zh/server.zh';
import { pieces, told } from './zh/servertold.zh';

export const sentences = { ...refusals, ...told };
export { pieces };
export const said = sayings(sentences, pieces);

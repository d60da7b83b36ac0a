// The server's sentences in the language of the page, with what finds them: loaded with the first of them.
import { sayings } from './sayings';
import { refusals } from './strings/server.zh';
import { pieces, told } from './strings/servertold.zh';

export const sentences = { ...refusals, ...told };
export { pieces };
export const said = sayings(sentences, pieces);

// The server's sentences in the language of the page, with what finds them: loaded with the first of them.
import { sayings } from './sayings';
import { pieces, sentences } from './strings/server.zh';

export const said = sayings(sentences, pieces);

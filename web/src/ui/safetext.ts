// Every text, title and label of the page's elements passes here, so that none can reorder what is around it.
// Callers of `harmless` see to the rest: canvases, placeholders, the document's title.
import { options } from 'preact';
import { harmless } from '../i18n/format';

const SHOWN = ['title', 'aria-label'];
const before = options.vnode;

options.vnode = (node) => {
	const { type, props } = node as { type: unknown; props: unknown };
	if (type === null && typeof props === 'string') node.props = harmless(props) as never; // a text
	else if (typeof type === 'string') {
		const named = props as Record<string, unknown>;
		for (const name of SHOWN) if (typeof named[name] === 'string') named[name] = harmless(named[name]);
	}
	before?.(node);
};

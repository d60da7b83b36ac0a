// The meaning of the colours of calls, and the choice of colours without red and green.
import type { ComponentChild } from 'preact';
import { api, type Flame, type Frames } from '../../api/api';
import { count } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { css, colorOf, HUES, packageOf } from '../../ui/color';
import { useLoad } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { dark, safe, useSafe } from '../../ui/theme';
import { tr } from '../../i18n/strings/trace';

const PACKAGES = 16;

/** Packages, those with most weight first, each with a method that has its colour. */
function packagesOf(names: string[], weight: (i: number) => number): { pkg: string; name: string }[] {
	const of = new Map<string, { pkg: string; name: string; weight: number }>();
	for (const [i, name] of names.entries()) {
		const pkg = packageOf(name);
		const p = of.get(pkg);
		if (p) p.weight += weight(i);
		else of.set(pkg, { pkg, name, weight: weight(i) });
	}
	return [...of.values()].sort((a, b) => b.weight - a.weight);
}

const begins = (name: string, prefix: string) => name.startsWith(prefix.endsWith('*') ? prefix.slice(0, -1) : prefix.endsWith('.') ? prefix : `${prefix}.`);

/** The library of a method, by the longest rule that fits; '': the app. */
function libraryOf(name: string, { app, framework, presets }: Frames): string {
	const rules = [['', ''], ...app.map((p) => [p, '']), ...framework.map((p) => [p, tr('Library code')]), ...presets.flatMap((p) => (p.enabled ? p.prefixes.map((x) => [x, serverText(p.title)]) : []))];
	return rules.reduce((best, rule) => (rule[0].length > best[0].length && begins(name, rule[0]) ? rule : best))[1];
}

export const Line = ({ color, text, more }: { color: string; text: ComponentChild; more?: string }) => <li><i class="swatch" style={{ background: color }} /><span>{text}</span>{more && <span class="quiet">{more}</span>}</li>;

export function Packages({ names, weight }: { names: string[]; weight: (i: number) => number }) {
	const frames = useLoad('frames', api.frames);
	const all = packagesOf(names, weight);
	return <><h3>{tr('Calls, by package')}</h3>
		<ul>{all.slice(0, PACKAGES).map(({ pkg, name }) => <Line key={pkg} color={css(colorOf(name, dark.value, safe.value))} text={<span class="mono">{pkg}</span>} more={frames.value ? libraryOf(name, frames.value) : ''} />)}</ul>
		{all.length > PACKAGES && <p class="quiet">{tr('and {n} more packages', { n: count(all.length - PACKAGES) })}</p>}
		<p class="quiet">{tr('A package has one hue, a class one lightness.')}{all.length > HUES && <>{' '}{tr('Packages share {hues} hues.', { hues: HUES })}</>}</p></>;
}

export function Key({ children }: { children: () => ComponentChild }) {
	return <Popover small label={tr('Colours')} title={tr('What the colours mean')}>{() => <div class="colourkey">
		<label class="check" title={tr('For red-green colour blindness; stored in this browser')}><input type="checkbox" checked={safe.value} onChange={(e) => useSafe(e.currentTarget.checked)} />{' '}{tr('Colour-blind palette')}</label>
		{children()}
	</div>}</Popover>;
}

/** Of the frames of a graph: packages by their own time. */
export function FlameLegend({ f, searched }: { f: Flame; searched: boolean }) {
	return <Key>{() => {
		const nodes = [...f.name.keys()].filter((i) => f.method[i] >= 0 && !f.other[i]);
		return <>
			<Packages names={nodes.map((i) => f.names[f.name[i]])} weight={(k) => f.self[nodes[k]]} />
			<ul>
				{searched && <Line color="var(--hit)" text={tr('search matches')} />}
				{f.other.some(Boolean) && <Line color="var(--line)" text={tr('smaller frames, drawn as one')} />}
			</ul>
		</>;
	}}</Key>;
}

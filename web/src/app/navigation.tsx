// The navigation: frequent pages as links, the others in menus below a button.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../api/api';
import { allowed, current, PLACES, type Place } from './pages';
import { link, path } from '../ui/route';
import { tr } from '../i18n/strings/frame';

const MENUS: [Place['group'], string][] = [['fleet', tr('Fleet')], ['problems', tr('Problems')], ['manage', tr('Manage')]];

function PlaceLink({ place }: { place: Place }) {
	return <a href={link(place.at)} aria-current={current(place, path.value)}>{place.label}</a>;
}

/** Where an arrow leads from the link that has the focus; -1 is the button. */
function stepTo(key: string, at: number, count: number): number | undefined {
	if (key === 'ArrowDown') return (at + 1) % count;
	if (key === 'ArrowUp') return at <= 0 ? count - 1 : at - 1;
	return key === 'Home' ? 0 : key === 'End' ? count - 1 : undefined;
}

/** Closes an open menu when pointer or focus leave it, and on a new page. */
function useClosing(open: boolean, box: preact.RefObject<HTMLElement>, close: () => void): void {
	const here = path.value;
	useLayoutEffect(close, [here]);
	useLayoutEffect(() => {
		if (!open) return;
		const outside = (e: Event) => !box.current?.contains(e.target as Node) && close();
		addEventListener('pointerdown', outside);
		addEventListener('focusin', outside);
		return () => {
			removeEventListener('pointerdown', outside);
			removeEventListener('focusin', outside);
		};
	}, [open]);
}

function PlacesMenu({ id, title, places }: { id: string; title: string; places: Place[] }) {
	const [open, show] = useState(false);
	const box = useRef<HTMLDivElement>(null);
	const button = useRef<HTMLButtonElement>(null);
	useClosing(open, box, () => show(false));
	const links = () => [...box.current!.querySelectorAll('a')];
	const focusOn = (n: number) => {
		show(true);
		requestAnimationFrame(() => links()[n]?.focus()); // once it is shown
	};
	const key = (e: KeyboardEvent) => {
		const to = stepTo(e.key, links().indexOf(document.activeElement as HTMLAnchorElement), places.length);
		if (e.key === 'Escape' && open) {
			show(false);
			button.current?.focus();
		} else if (to !== undefined && (open || e.key.startsWith('Arrow'))) focusOn(to);
		else return;
		e.preventDefault();
		e.stopPropagation();
	};
	return (
		<div class="places" ref={box} onKeyDown={key}>
			<button ref={button} aria-expanded={open} aria-controls={`places-${id}`} class={places.some((p) => current(p, path.value)) ? 'here' : ''}
				aria-current={places.some((p) => current(p, path.value)) ? 'true' : undefined} onClick={() => show(!open)}>{title}</button>
			<ul id={`places-${id}`} hidden={!open} onClick={(e) => (e.target as Element).closest('a') && show(false)}>
				{places.map((p) => <li key={p.at}><PlaceLink place={p} /></li>)}
			</ul>
		</div>
	);
}

export function Navigation({ s }: { s: Session }) {
	const of = (group: Place['group']) => PLACES.filter((p) => p.group === group && allowed(p, s));
	return (
		<nav aria-label={tr('Pages')}>
			{of('').map((p) => <PlaceLink key={p.at} place={p} />)}
			{MENUS.map(([group, title]) => <PlacesMenu key={group} id={group!} title={title} places={of(group)} />)}
		</nav>
	);
}

// A new key, shown once.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api, currentProject, may, useProject } from '../api/api';
import { manage } from '../api/manage';
import { Command, Copy, Failure, useLoad } from './parts';
import { tr } from '../i18n/strings/frame';

/** The secret is shown only here; if it is lost, another key must be created. */
export function NewKey({ secret, name }: { secret: string; name: string }) {
	return (
		<div class="notice good" role="status">
			{tr.rich('{name} It is shown only once; the server stores only its hash.', { name: <strong>{name ? tr('The key {name} was created.', { name }) : tr('The key was created.')}</strong> })}
			<div class="command"><pre tabIndex={0}>{secret}</pre><Copy text={secret} label={tr('Copy the key')} /></div>
		</div>
	);
}

/** A new server has no project to make a key in, or to send a trace to. */
export function firstProject(): Promise<void> {
	return (made ??= makeFirst().finally(() => (made = undefined)));
}

let made: Promise<void> | undefined; // several files may need it at the same time

async function makeFirst(): Promise<void> {
	if (currentProject() || (await manage.projects()).projects.length > 0) return;
	useProject((await manage.makeProject('default')).id);
}

/** A button that puts a new ingest key into commands; nothing for those who may not make one. */
function KeyButton({ name, made }: { name: string; made: (secret: string) => void }) {
	const [busy, work] = useState(false);
	const [error, fail] = useState<Error | null>(null);
	const make = () => {
		work(true);
		fail(null);
		firstProject().then(() => manage.makeKey(name, 'ingest')).then((k) => made(k.key), fail).finally(() => work(false));
	};
	if (!may.admin) return null;
	return <>
		<button class="small" disabled={busy} onClick={make}>{tr('Create an ingest key and fill it in')}</button>
		{error && <Failure error={error} />}
	</>;
}

/** The line that sets $KEY: with the key in hand, or made on the server. */
function keyLine(secret: string, project: string): string {
	return secret ? `KEY=${secret}` : `KEY=$(tracewell key create --data ./data --project ${shell(project || 'default')} --scope ingest)`;
}

/** The line that sets $KEY, then a command, and a button that fills in a new key; `without`: shown until that is done. */
export function KeyCommand({ name, without, children = '' }: { name: string; without?: ComponentChildren; children?: string }) {
	const [secret, hold] = useState('');
	const project = useLoad('session', () => api.session()).value?.project?.name ?? '';
	return <>
		<Command>{`${keyLine(secret, project)}\n${children}`.trim()}</Command>
		{secret ? <NewKey secret={secret} name="" /> : <><KeyButton name={name} made={hold} />{without}</>}
	</>;
}

/** Quotes any text as one word of a shell. */
export function shell(word: string): string {
	return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

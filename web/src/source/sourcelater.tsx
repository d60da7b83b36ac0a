// The source of a method; its code is loaded at the first use.
import { Failure, useLoad } from '../ui/parts';
import { tr } from '../i18n/strings/sources';

export interface About { method: string; app?: string; base?: string; head?: string; onOwners?: (owners: string | null) => void }

export function SourceBox(about: About) {
	const code = useLoad('sourcecode', () => import('./sourcecode'));
	if (code.error) return <Failure error={code.error} retry={() => location.reload()} again={tr('Reload the page')} title={tr('The source could not be loaded.')} />;
	return code.value ? <code.value.SourceBox {...about} /> : null;
}

// Names of the stages of derived data, as pages show them.
import { tr } from '../i18n/strings/frame';

const NAMES: Record<string, string> = { names: tr('Method names'), rollup: tr('Rollups'), anr: tr('ANR groups'), findings: tr('Detectors') };

export const stageName = (stage: string) => NAMES[stage] ?? stage;

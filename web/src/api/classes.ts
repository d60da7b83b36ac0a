// Classes of devices, as every page about many traces has them.
import { tr } from '../i18n/strings/frame';

export const CLASSES = ['low', 'mid', 'high', 'unknown'];

const WORDS: Record<string, string> = { low: tr('low'), mid: tr('mid'), high: tr('high'), unknown: tr('unknown') };

export const classWord = (c: string): string => WORDS[c] ?? c;

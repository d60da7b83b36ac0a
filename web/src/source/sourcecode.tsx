// One piece of code, loaded with its first use, by whichever page.
export { showSource, SourceBox } from './sourcebox';
export { SourcePage } from './sourcepage';

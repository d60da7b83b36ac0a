// Pages with a merged flame graph, loaded together: separately, the code that they share with a trace's page would be split into more files.
export { ComparePage } from '../compare/compare';
export { VersusPage } from '../compare/versus';
export { FlamePage } from './fleetflame';

import type { CatalogueRow } from '../../catalogue-row.ts';

/** discovery/ads-server → stream-admission. A client waits for a slot, and no client did before. */
export type ClientsQueued = { type: 'clients.queued' };
/** discovery/ads-server → stream-admission. No client waits for a slot any more. */
export type ClientsAdmitted = { type: 'clients.admitted' };
/**
 * stream-admission/load → stream-admission. Load of the server since the last measurement. `turnMs`: average processor time of an event loop
 * iteration. `requests`: pending requests. `proxies`: served proxies that wait for a push. `isFull`: all slots are taken.
 */
export type LoadMeasured = {
  type: 'load.measured';
  turnMs: number;
  requests: number;
  proxies: number;
  isFull: boolean;
};

const diagram = 'stream-admission';
const row = (type: string, from: string, to: string): CatalogueRow<typeof diagram> => ({
  ...{ type, from, to, diagram, seeds: [] },
});
export const streamAdmissionCatalogue: readonly CatalogueRow<typeof diagram>[] = [
  row('clients.queued', 'discovery/ads-server', 'stream-admission'),
  row('clients.admitted', 'discovery/ads-server', 'stream-admission'),
  row('spawn', 'stream-admission', 'stream-admission/load'),
  row('load.measured', 'stream-admission/load', 'stream-admission'),
];

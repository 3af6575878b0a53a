/** DNS queries are not events. */
import type { CatalogueRow } from '../../catalogue-row.ts';

/** name-server → discovery. Names of the mesh are resolved at this address. */
export type NamesListening = { type: 'names.listening'; address: string };
/** name-server → discovery. Names are not resolved until the port is opened again. */
export type NamesFailed = { type: 'names.failed'; reason: string };

export type NamesReport = NamesListening | NamesFailed;

const row = (from: string, to: string, type: string): CatalogueRow<'name-server'> => ({
  ...{ type, from, to },
  ...{ diagram: 'name-server', seeds: [] },
});

export const nameServerCatalogue: readonly CatalogueRow<'name-server'>[] = [
  row('discovery', 'name-server', 'spawn'),
  row('name-server', 'name-server/port', 'spawn'),
  row('name-server/port', 'name-server', 'port.listening'),
  row('name-server/port', 'name-server', 'port.closed'),
  row('name-server', 'discovery', 'names.listening'),
  row('name-server', 'discovery', 'names.failed'),
  ...['openLimit', 'pause', 'trial'].map((timer) => row('name-server', 'name-server', `timer ${timer}`)),
];

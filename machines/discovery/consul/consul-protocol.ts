import type { CatalogueRow } from '../../catalogue-row.ts';
import type { CatalogReading } from './catalog-change.ts';
import type { WatchStrategy } from './watch-strategy.ts';

export type ConsulFailure = {
  reason: string;
  /** 0 without a response. */
  status: number;
};

/** consul/datacenters → consul. These datacenters are read, and no others. An empty name means the datacenter of the agent. */
export type DatacentersListed = { type: 'datacenters.listed'; datacenters: string[] };

/** discovery/http → consul → consul-catalog-N. An operator confirms the response that is held back. */
export type CatalogAccept = { type: 'catalog.accept'; datacenter: string };

/** consul-catalog-N/credentials → consul-catalog-N. The file of the token or a certificate changed. */
export type ConsulCredentialsChanged = { type: 'consul-credentials.changed' };

/** consul-catalog-N/watching → consul-catalog-N. Blocking queries returned other content; it is not served yet. */
export type CatalogChanged = { type: 'catalog.changed'; reading: CatalogReading };
/** consul-catalog-N/watching → consul-catalog-N. An index is lower than before: the server lost data, or was replaced. */
export type IndexRegressed = { type: 'index.regressed'; query: string };
/** consul-catalog-N/watching → consul-catalog-N. A blocking query failed. `draw`: random, from 0 to 1. */
export type QueryFailed = { type: 'query.failed'; failure: ConsulFailure; draw: number };

/** consul-catalog-N → consul. The catalog was read for the first time. */
export type CatalogSynced = { type: 'catalog.synced'; datacenter: string; services: number; instances: number };
/** consul-catalog-N → consul. How the catalog is watched. Sent once per choice. */
export type StrategyChosen = {
  type: 'strategy.chosen';
  datacenter: string;
  strategy: WatchStrategy;
  transport: string;
  connections: number;
};
/** consul-catalog-N → consul. A response is held back: the last known services are served. */
export type CatalogHeld = { type: 'catalog.held'; datacenter: string; reason: string };
/** consul-catalog-N → consul. The response is no longer held back: it was applied, or the next one removes little. */
export type CatalogReleased = { type: 'catalog.released'; datacenter: string; cause: ReleaseCause };
/** consul-catalog-N → consul. Consul does not respond, or responds with an error: the last known services are served. */
export type CatalogFailed = { type: 'catalog.failed'; datacenter: string; reason: string };
/** consul-catalog-N → consul. Consul responds again. */
export type CatalogRecovered = { type: 'catalog.recovered'; datacenter: string };

export type ReleaseCause = 'recovered' | 'repeated' | 'accepted by an operator';

export type CatalogReport =
  | CatalogSynced
  | StrategyChosen
  | CatalogHeld
  | CatalogReleased
  | CatalogFailed
  | CatalogRecovered;

type Diagram = 'consul' | 'consul-catalog';

const catalogueRows = (diagram: Diagram, from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));

const reports: readonly CatalogReport['type'][] = [
  ...(['catalog.synced', 'strategy.chosen', 'catalog.held'] as const),
  ...(['catalog.released', 'catalog.failed', 'catalog.recovered'] as const),
];
const timers = ['readLimit', 'retryDelay', 'stableDelay', 'verifyInterval'].map((name) => `timer ${name}`);
const children = ['credentials', 'surveying', 'reading', 'watching', 'verifying'];

export const consulCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...catalogueRows('consul', 'consul', 'consul/datacenters', ['spawn']),
  ...catalogueRows('consul', 'consul/datacenters', 'consul', ['datacenters.listed']),
  ...catalogueRows('consul', 'discovery/http', 'consul', ['catalog.accept']),
  ...catalogueRows('consul-catalog', 'consul', 'consul-catalog-N', ['spawn', 'catalog.accept']),
  ...catalogueRows('consul-catalog', 'consul-catalog-N', 'consul', reports),
  ...children.flatMap((child) =>
    catalogueRows('consul-catalog', 'consul-catalog-N', `consul-catalog-N/${child}`, ['spawn']),
  ),
  ...catalogueRows('consul-catalog', 'consul-catalog-N/credentials', 'consul-catalog-N', [
    'consul-credentials.changed',
  ]),
  ...catalogueRows('consul-catalog', 'consul-catalog-N/watching', 'consul-catalog-N', [
    ...['catalog.changed', 'index.regressed', 'query.failed'],
  ]),
  ...catalogueRows('consul-catalog', 'consul-catalog-N', 'consul-catalog-N', timers),
];

import type { CatalogueRow } from '../../catalogue-row.ts';

/** discovery/ads-server → memory-release. A proxy is served, and none was before. */
export type ProxiesConnected = { type: 'proxies.connected' };
/**
 * discovery/ads-server → memory-release. The last served proxy has disconnected. `maxServed`: maximum number of proxies that were served
 * concurrently since `proxies.connected`.
 */
export type ProxiesDisconnected = { type: 'proxies.disconnected'; maxServed: number };
/** memory-release/collection → memory-release. Objects of disconnected proxies are collected. V8 keeps their pages. */
export type GarbageCollected = { type: 'garbage.collected' };
/** memory-release/release → memory-release. V8 has returned unused pages to the system. */
export type MemoryReleased = { type: 'memory.released' };

const diagram = 'memory-release';
const row = (type: string, from: string, to: string): CatalogueRow<typeof diagram> => ({
  ...{ type, from, to, diagram, seeds: [] },
});
export const memoryReleaseCatalogue: readonly CatalogueRow<typeof diagram>[] = [
  row('proxies.connected', 'discovery/ads-server', 'memory-release'),
  row('proxies.disconnected', 'discovery/ads-server', 'memory-release'),
  row('spawn', 'memory-release', 'memory-release/collection'),
  row('garbage.collected', 'memory-release/collection', 'memory-release'),
  row('spawn', 'memory-release', 'memory-release/release'),
  row('memory.released', 'memory-release/release', 'memory-release'),
];

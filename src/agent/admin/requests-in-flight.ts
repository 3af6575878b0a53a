/** A graceful stop waits for the active requests of an Envoy. */
import { fromPromise } from 'xstate';
import type { AdminConnector } from './admin-client.ts';

export interface CountEnvironment {
  readonly adminAt: AdminConnector;
  /** Ports of Envoy's listeners for probes and scrapes; 0 if disabled. */
  readonly ownPorts: readonly number[];
}

/** HTTP stat prefixes of the admin interface and of the bootstrap's listeners. */
const ownHttpPrefixes = ['admin', 'agent', 'stats'];
const statsPath = `/stats?usedonly&filter=${encodeURIComponent('downstream_(rq|cx)_active$')}`;
const responseLimitMs = 2_000;

/** Resolves with -1 if Envoy has no such statistics; rejects without a response within 2 s. */
export function countRequests({ adminAt, ownPorts }: CountEnvironment) {
  return fromPromise<number, { adminPort: number }>(async ({ input }) => {
    const { status, body } = await adminAt(input.adminPort).get(statsPath, responseLimitMs);
    if (status !== 200) throw new Error(`Envoy admin GET ${statsPath}: status ${status}`);
    return requestsInFlight(body, ownPorts);
  });
}

/**
 * Each connection without HTTP is one request.
 *
 * @returns -1 without any statistics
 */
export function requestsInFlight(stats: string, ownPorts: readonly number[]): number {
  if (stats.trim() === '') return -1;
  let requests = 0;
  let connections = 0;
  let httpConnections = 0;
  for (const line of stats.split('\n')) {
    const [, name = '', value = '0'] = /^(\S.*): (\d+)$/.exec(line) ?? [];
    if (isOwnListener(name, ownPorts)) continue;
    if (name.startsWith('listener.')) connections += Number(value);
    else if (!name.startsWith('http.')) continue;
    else if (name.endsWith('.downstream_rq_active')) requests += Number(value);
    else httpConnections += Number(value);
  }
  // Envoy reads the gauges at different times, so the difference may be negative.
  return requests + Math.max(0, connections - httpConnections);
}

function isOwnListener(name: string, ownPorts: readonly number[]): boolean {
  if (ownHttpPrefixes.some((prefix) => name.startsWith(`http.${prefix}.`))) return true;
  if (/^listener\.(admin|envoy_internal_.*)\.|\.(worker_\d+|main_thread)\./.test(name)) return true;
  const [, port] = /^listener\..*_(\d+)\.downstream_cx_active$/.exec(name) ?? [];
  return ownPorts.some((ownPort) => ownPort !== 0 && ownPort === Number(port));
}

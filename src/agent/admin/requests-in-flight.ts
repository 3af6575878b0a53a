/** How much is in flight in one Envoy: what a stop that loses nothing waits for (spec/agent.md §2.5). */
import { fromPromise } from 'xstate';
import type { AdminConnector } from './admin-client.ts';

export interface CountEnvironment {
  readonly adminAt: AdminConnector;
  /** Ports of Envoy's own listeners, which serve probes and scrapes; 0: no such listener. */
  readonly ownPorts: readonly number[];
}

/** What our bootstrap's own listeners and the admin interface call themselves. */
const ownHttpPrefixes = ['admin', 'agent', 'stats'];
const statsPath = `/stats?usedonly&filter=${encodeURIComponent('downstream_(rq|cx)_active$')}`;
const answerLimitMs = 2_000;

/**
 * The count effect of the shutdown chart.
 *
 * Resolves with -1 where Envoy has no such statistics; rejects when it does not answer in 2 s.
 */
export function countRequests({ adminAt, ownPorts }: CountEnvironment) {
  return fromPromise<number, { adminPort: number }>(async ({ input }) => {
    const { status, body } = await adminAt(input.adminPort).get(statsPath, answerLimitMs);
    if (status !== 200) throw new Error(`Envoy admin GET ${statsPath}: status ${status}`);
    return requestsInFlight(body, ownPorts);
  });
}

/**
 * Requests in flight of HTTP clients, plus connections that carry no HTTP: a TCP connection is one long request. A
 * connection that waits for its client's next request counts for nothing.
 *
 * @param stats lines of `name: value`
 * @returns -1 for no statistics at all
 */
export function requestsInFlight(stats: string, ownPorts: readonly number[]): number {
  if (stats.trim() === '') return -1;
  let requests = 0;
  let connections = 0;
  let httpConnections = 0;
  for (const line of stats.split('\n')) {
    const [, name = '', value = '0'] = /^(\S.*): (\d+)$/.exec(line) ?? [];
    if (isOwn(name, ownPorts)) continue;
    if (name.startsWith('listener.')) connections += Number(value);
    else if (!name.startsWith('http.')) continue;
    else if (name.endsWith('.downstream_rq_active')) requests += Number(value);
    else httpConnections += Number(value);
  }
  // Each figure is read at its own moment.
  return requests + Math.max(0, connections - httpConnections);
}

/** Whether a counter is none of the application's: Envoy's own ports, the share of each thread in a listener's count, and internal listeners. */
function isOwn(name: string, ownPorts: readonly number[]): boolean {
  if (ownHttpPrefixes.some((prefix) => name.startsWith(`http.${prefix}.`))) return true;
  if (/^listener\.(admin|envoy_internal_.*)\.|\.(worker_\d+|main_thread)\./.test(name)) return true;
  const [, port] = /^listener\..*_(\d+)\.downstream_cx_active$/.exec(name) ?? [];
  return ownPorts.some((own) => own !== 0 && own === Number(port));
}

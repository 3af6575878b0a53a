/** The effect of `discovery/http`: probes, metrics and debug pages. */
import { type AnyActorRef, fromCallback } from 'xstate';
import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { peer } from '../../../../machines/discovery/peers.ts';
import type { HttpOrder } from '../../../../machines/discovery/protocol.ts';
import { relay } from '../../../runtime/actors/relay-event.ts';
import { explainInOneLine } from '../../../runtime/errors.ts';
import { Profiler, profilingPath } from '../../../runtime/profiler.ts';
import type { DebuggerAccess } from '../../../runtime/trace/debugger-access.ts';
import { type StreamAnswer, type TraceEndpoint, tracePath } from '../../../runtime/trace/trace-endpoint.ts';
import { formatAddress, type ListenAddress } from '../../listen-address.ts';
import { answerDebug, type DebugAccess, type DebugSources } from '../debug/debug-endpoints.ts';
import type { DiscoveryMetrics } from '../metrics/metrics.ts';
import { answerLogLevels, type LogLevelSources } from '../scopes/log-level-page.ts';
import { type HttpAnswer, type HttpRequest, HttpServers, type HttpServersOptions } from './http-server.ts';

export interface HttpEffectOptions extends HttpServersOptions {
  readonly addresses: readonly ListenAddress[];
  /** For `/version`. */
  readonly version: string;
  readonly metrics: Pick<DiscoveryMetrics, 'text'>;
  /** Absent: no debug pages. */
  readonly debug?: DebugSources & { readonly access: DebugAccess };
  /** Levels of the log, which those may change that may see the debug pages. */
  readonly logLevels: LogLevelSources;
  /** Told how what a person orders on a page gets to those who do it. */
  readonly opened?: (orders: PageOrders) => void;
  /** What the start is at, for people who ask why it is not ready. */
  readonly waitsFor?: () => string;
  /** Files of configuration in which nobody can tell what is there, each with the reason. */
  readonly unreadable?: () => ReadonlyMap<string, string>;
  /** What else a person should know of a control plane that is ready, a line each. */
  readonly conditions?: () => readonly string[];
  /** Of profiles, and of debug pages that change something. */
  readonly access: DebuggerAccess;
  /** Whether profiles are served (`--profile`). */
  readonly profile?: boolean;
  /** Whether heap snapshots are among them (`--heapSnapshots`). */
  readonly heapSnapshots?: boolean;
  readonly trace?: TraceEndpoint;
}

export interface PageOrders {
  /** Has everything pushed to everyone. */
  readonly pushAll: () => void;
  /** What an operator orders of the authority. */
  readonly rotateRoot: (order: OperatorOrder['type']) => void;
  /** Applies the response of Consul that is held back. */
  readonly acceptCatalog: (datacenter: string) => void;
}

export function httpEffect(options: HttpEffectOptions) {
  return fromCallback<HttpOrder, undefined>(({ receive, sendBack, self, system }) => {
    let isServing = false;
    options.opened?.({
      pushAll: () => sendBack({ type: 'push.wanted' }),
      rotateRoot: (type) => relay(self as AnyActorRef, peer('authority')({ system }), { type }),
      acceptCatalog: (datacenter) =>
        relay(self as AnyActorRef, peer('consul')({ system }), { type: 'catalog.accept', datacenter }),
    });
    const { access, heapSnapshots = false } = options;
    const connectionStates = () => statesOf(options);
    const profiler = options.profile === true ? new Profiler({ access, heapSnapshots, connectionStates }) : undefined;
    const servers = new HttpServers(
      (request) => answer(options, request, { isServing, ...(profiler && { profiler }) }),
      {
        ...(options.failed !== undefined && { failed: options.failed }),
        ...(options.grpc !== undefined && { grpc: options.grpc }),
        ...(options.connections !== undefined && { connections: options.connections }),
      },
    );
    const open = async (): Promise<void> => {
      try {
        const opened = await servers.open(options.addresses);
        for (const { port } of opened) {
          access.opened(port);
          if (options.debug !== undefined) options.trace?.opened(port);
        }
        sendBack({ type: 'http.listening', addresses: opened.map(formatAddress) });
      } catch (error) {
        sendBack({ type: 'http.failed', reason: explainInOneLine(error) });
      }
    };
    receive((order) => {
      switch (order.type) {
        case 'http.open':
          void open();
          break;
        case 'readiness.began':
          isServing = true;
          break;
        case 'readiness.ended':
          isServing = false;
          break;
        case 'http.close':
          profiler?.end();
          void servers.close().then(() => sendBack({ type: 'http.closed' }));
          break;
      }
    });
    return () => {
      profiler?.end();
      servers.cut();
    };
  });
}

interface Surroundings {
  readonly isServing: boolean;
  readonly profiler?: Profiler;
}

async function answer(
  {
    version,
    metrics,
    debug,
    logLevels,
    trace,
    waitsFor = () => '',
    unreadable = () => new Map(),
    conditions = () => [],
  }: HttpEffectOptions,
  request: HttpRequest,
  { isServing, profiler }: Surroundings,
): Promise<HttpAnswer | StreamAnswer> {
  const { path, query } = request;
  if (path === '/ready') {
    return isServing
      ? { status: 200, body: textOf(unreadable()) + linesOf(conditions()) }
      : { status: 503, body: waitsFor() };
  }
  if (path === '/version') return { status: 200, body: version };
  if (path === '/metrics') return { status: 200, ...(await metrics.text()) };
  if (profiler !== undefined && (path === profilingPath || path.startsWith(`${profilingPath}/`))) {
    return profiler.answer(request);
  }
  if (debug !== undefined) {
    if (trace !== undefined && path === tracePath) return trace.answer(request, query);
    const page =
      (await answerLogLevels(logLevels, debug.access, request)) ?? (await answerDebug(debug, debug.access, request));
    if (page !== undefined) return page;
  }
  return { status: 404, body: `not found: ${path}; /debug lists the pages\n` };
}

/** Files that a probe's answer names; the log and `/debug/push_status` have all. */
const mostListed = 5;

function textOf(unreadable: ReadonlyMap<string, string>): string {
  const lines: string[] = [];
  for (const [file, reason] of unreadable) if (lines.push(`cannot read ${file}: ${reason}\n`) >= mostListed) break;
  const others = unreadable.size - lines.length;
  return lines.join('') + (others > 0 ? `and ${others} more\n` : '');
}

function linesOf(conditions: readonly string[]): string {
  const lines = conditions.slice(0, mostListed).map((condition) => `${condition}\n`);
  const others = conditions.length - lines.length;
  return lines.join('') + (others > 0 ? `and ${others} more\n` : '');
}

function* statesOf({ debug }: HttpEffectOptions): Iterable<string> {
  for (const { state } of debug?.connections() ?? []) yield state;
}

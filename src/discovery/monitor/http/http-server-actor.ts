import { type AnyActorRef, fromCallback } from 'xstate';
import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { peer } from '../../../../machines/discovery/peers.ts';
import type { HttpOrder } from '../../../../machines/discovery/protocol.ts';
import { rejectionOf } from '../../../runtime/actors/rejection-of.ts';
import { relay } from '../../../runtime/actors/relay-event.ts';
import { explainInOneLine } from '../../../runtime/errors.ts';
import { Profiler, profilingPath } from '../../../runtime/profiler.ts';
import type { DebuggerAccess } from '../../../runtime/trace/debugger-access.ts';
import { type StreamResponse, type TraceEndpoint, tracePath } from '../../../runtime/trace/trace-endpoint.ts';
import { formatAddress, type ListenAddress } from '../../listen-address.ts';
import { type DebugAccess, type DebugSources, respondToDebugRequest } from '../debug/debug-endpoints.ts';
import type { DiscoveryMetrics } from '../metrics/metrics.ts';
import { type LogLevelSources, respondToLogLevels } from '../scopes/log-level-page.ts';
import { type HttpReply, type HttpRequest, HttpServers, type HttpServersOptions } from './http-server.ts';

export interface HttpEffectOptions extends HttpServersOptions {
  readonly addresses: readonly ListenAddress[];
  readonly version: string;
  readonly metrics: Pick<DiscoveryMetrics, 'text'>;
  /** `undefined` if debug pages are disabled. */
  readonly debug?: DebugSources & { readonly access: DebugAccess };
  readonly logLevels: LogLevelSources;
  readonly onOpened?: (orders: PageOrders) => void;
  /** Unmet condition of startup, for the readiness probe. */
  readonly startCondition?: () => string;
  readonly unreadable?: () => ReadonlyMap<string, string>;
  /** Problems that do not affect readiness, one per line. */
  readonly conditions?: () => readonly string[];
  readonly access: DebuggerAccess;
  readonly profile?: boolean;
  readonly heapSnapshots?: boolean;
  readonly trace?: TraceEndpoint;
}

export interface PageOrders {
  readonly pushAll: () => void;
  readonly rotateRoot: (order: OperatorOrder['type']) => string | undefined;
  readonly acceptCatalog: (datacenter: string) => void;
}

export function httpEffect(options: HttpEffectOptions) {
  return fromCallback<HttpOrder, undefined>(({ receive, sendBack, self, system }) => {
    let isServing = false;
    options.onOpened?.({
      pushAll: () => sendBack({ type: 'full-push.requested' }),
      rotateRoot: (type) => {
        const authority = peer('authority')({ system });
        const reason = rejectionOf(authority, { type });
        if (reason === undefined) relay(self as AnyActorRef, authority, { type });
        return reason;
      },
      acceptCatalog: (datacenter) =>
        relay(self as AnyActorRef, peer('consul')({ system }), { type: 'catalog.accept', datacenter }),
    });
    const { access, heapSnapshots = false } = options;
    const connectionStates = () => statesOf(options);
    const profiler = options.profile === true ? new Profiler({ access, heapSnapshots, connectionStates }) : undefined;
    const servers = new HttpServers(
      (request) => respond(options, request, { isServing, ...(profiler && { profiler }) }),
      {
        ...(options.failed !== undefined && { failed: options.failed }),
        ...(options.grpc !== undefined && { grpc: options.grpc }),
        ...(options.connections !== undefined && { connections: options.connections }),
      },
    );
    const openServers = async (): Promise<void> => {
      try {
        const openedAddresses = await servers.open(options.addresses);
        for (const { port } of openedAddresses) {
          access.onPortOpened(port);
          if (options.debug !== undefined) options.trace?.onPortOpened(port);
        }
        sendBack({ type: 'http.listening', addresses: openedAddresses.map(formatAddress) });
      } catch (error) {
        sendBack({ type: 'http.failed', reason: explainInOneLine(error) });
      }
    };
    receive((order) => {
      switch (order.type) {
        case 'http.open':
          void openServers();
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
      servers.closeConnections();
    };
  });
}

interface HandlerContext {
  readonly isServing: boolean;
  readonly profiler?: Profiler;
}

async function respond(
  {
    version,
    metrics,
    debug,
    logLevels,
    trace,
    startCondition = () => '',
    unreadable = () => new Map(),
    conditions = () => [],
  }: HttpEffectOptions,
  request: HttpRequest,
  { isServing, profiler }: HandlerContext,
): Promise<HttpReply | StreamResponse> {
  const { path, query } = request;
  if (path === '/ready') {
    return isServing
      ? { status: 200, body: textOf(unreadable()) + linesOf(conditions()) }
      : { status: 503, body: startCondition() };
  }
  if (path === '/version') return { status: 200, body: version };
  if (path === '/metrics') return { status: 200, ...(await metrics.text()) };
  if (profiler !== undefined && (path === profilingPath || path.startsWith(`${profilingPath}/`))) {
    return profiler.respond(request);
  }
  if (debug !== undefined) {
    if (trace !== undefined && path === tracePath) return trace.respond(request, query);
    const page =
      (await respondToLogLevels(logLevels, debug.access, request)) ??
      (await respondToDebugRequest(debug, debug.access, request));
    if (page !== undefined) return page;
  }
  return { status: 404, body: `not found: ${path}; /debug lists the pages\n` };
}

/** Files in a probe response. The log and `/debug/push_status` list all. */
const maxListedConditions = 5;

function textOf(unreadableFiles: ReadonlyMap<string, string>): string {
  const outputLines: string[] = [];
  for (const [file, reason] of unreadableFiles)
    if (outputLines.push(`cannot read ${file}: ${reason}\n`) >= maxListedConditions) break;
  const omittedCount = unreadableFiles.size - outputLines.length;
  return outputLines.join('') + (omittedCount > 0 ? `and ${omittedCount} more\n` : '');
}

function linesOf(conditions: readonly string[]): string {
  const lines = conditions.slice(0, maxListedConditions).map((condition) => `${condition}\n`);
  const omittedCount = conditions.length - lines.length;
  return lines.join('') + (omittedCount > 0 ? `and ${omittedCount} more\n` : '');
}

function* statesOf({ debug }: HttpEffectOptions): Iterable<string> {
  for (const { state } of debug?.connections() ?? []) yield state;
}

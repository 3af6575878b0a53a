import { faultLog } from '../../runtime/fences/uncaught.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { scalarText } from '../../runtime/scalar-text.ts';
import type { DebuggerAccess } from '../../runtime/trace/debugger-access.ts';
import type { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import type { XdsSources } from '../config/xds/xds-sources.ts';
import type { ConsulRegistries } from '../consul/consul-registries.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import type { Authenticator } from '../xds/access/authenticator.ts';
import { omitToolClients } from '../xds/tool-clients.ts';
import type { DebugAccess, DebugSources } from './debug/debug-endpoints.ts';
import type { AuthorityPageSource } from './debug/debug-page.ts';
import { callerNamespace } from './debug/known-caller.ts';
import { XdsDebug } from './debug/xds-debug.ts';
import type { MeshFindings } from './diagnostics/mesh-diagnostics.ts';
import { WarningLog } from './diagnostics/warning-log.ts';
import { type HttpEffectOptions, httpEffect, type PageOrders } from './http/http-server-actor.ts';
import { DiscoveryMetrics, type MetricsOptions } from './metrics/metrics.ts';
import { StartProgress } from './start-progress.ts';

const maxTargetLength = 200;

export interface MonitorParts
  extends Omit<MetricsOptions, 'nodes' | 'connectedVersions' | 'configSources' | 'datacenters' | 'onWarnings'>,
    Pick<
      DebugSources,
      | 'resources'
      | 'history'
      | 'certificateSources'
      | 'connections'
      | 'disconnect'
      | 'secretOfCluster'
      | 'unreachableCluster'
    > {
  readonly options: DiscoveryOptions;
  readonly access: DebuggerAccess;
  readonly trace: TraceEndpoint | undefined;
  readonly authenticators: readonly Authenticator[];
  readonly authority: Omit<AuthorityPageSource, 'rotate'> | undefined;
  readonly grpc: NonNullable<HttpEffectOptions['grpc']>;
  readonly configSources: XdsSources;
  readonly consul: Pick<ConsulRegistries, 'views' | 'conditions'> | undefined;
  readonly describeInjection?: () => object;
  readonly reportWarnings: (warnings: MeshFindings['warnings']) => void;
  readonly unreadable: () => ReadonlyMap<string, string>;
  /** Unmet condition of startup; empty without one. */
  readonly awaitedText: () => string;
  readonly log: Logger;
}

export function makeMonitor(monitorParts: MonitorParts) {
  const { options, version, state, cache, resources, access, trace, log, authority, configSources, consul } =
    monitorParts;
  const warningLog = new WarningLog({ log: log.scope('config-controller') });
  const metrics = new DiscoveryMetrics({
    ...monitorParts,
    configSources: () => configSources.statuses,
    ...(consul && { datacenters: () => consul.views }),
    nodes: () => resources.nodes,
    onWarnings: ({ warnings, loggableWarnings }) => {
      monitorParts.reportWarnings(warnings);
      warningLog.record(loggableWarnings);
    },
    *connectedVersions() {
      for (const { proxy } of resources.nodes) yield scalarText(proxy.metadata.ISTIO_VERSION) || 'unknown';
    },
  });
  const progress = new StartProgress();
  let pageOrders: PageOrders | undefined;
  const {
    history,
    certificateSources,
    connections,
    disconnect,
    secretOfCluster,
    unreachableCluster,
    describeInjection,
  } = monitorParts;
  const sources: DebugSources = {
    ...{ state, resources, cache, history, certificateSources, disconnect, configSources },
    connections: () => omitToolClients(connections()),
    ...(secretOfCluster && { secretOfCluster }),
    ...(unreachableCluster && { unreachableCluster }),
    ...(describeInjection && { describeInjection }),
    pushAll: () => pageOrders?.pushAll(),
    ...(authority && {
      authority: {
        ...authority,
        rotate: (order) =>
          pageOrders === undefined ? 'The HTTP server is not open yet.' : pageOrders.rotateRoot(order),
      },
    }),
    ...(consul && {
      consul: { datacenters: () => consul.views, accept: (datacenter) => pageOrders?.acceptCatalog(datacenter) },
    }),
    clusterId: options.clusterId,
    unsafeAdmin: options.unsafeAdminEndpoints,
  };
  const debugAccess: DebugAccess = {
    token: access,
    localNeedsToken: options.debugLocalNeedsToken,
    namespaceOf: callerNamespace(monitorParts.authenticators),
    checksNamespace: options.debugNamespaceAuth,
    rootNamespace: () => state.mesh.rootNamespace,
    allowedNamespaces: options.debugNamespaces,
  };
  const debug = new XdsDebug({ sources, access: debugAccess });
  const report = faultLog(log.scope('http'), 'http.requestFailed');
  return {
    metrics,
    progress,
    oneShot: debug.respond.bind(debug),
    actor: () =>
      httpEffect({
        failed: (error, { method, target }) => report(error, { method, target: target.slice(0, maxTargetLength) }),
        addresses: options.httpAddresses,
        connections: options.httpConnections,
        version,
        metrics,
        // Without a separate port, xDS is served on the HTTP port.
        ...(options.grpcAddress === undefined && { grpc: monitorParts.grpc }),
        ...(options.servesDebug && { debug: { ...sources, access: debugAccess } }),
        logLevels: { log, localMayChange: options.localLogLevels },
        onOpened: (onOpened) => {
          pageOrders = onOpened;
        },
        access,
        profile: options.profile,
        heapSnapshots: options.heapSnapshots,
        startCondition: () => progress.describeProgress(monitorParts.awaitedText(), consul?.conditions),
        unreadable: monitorParts.unreadable,
        conditions: () => [...configSources.conditions, ...(consul?.conditions ?? [])],
        ...(trace !== undefined && { trace }),
      }),
  };
}

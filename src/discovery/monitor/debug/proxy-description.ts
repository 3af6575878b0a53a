import {
  type EnvoyBuild,
  envoyVersionText,
  unsupportedEnvoyText,
  wasmUnsupportedReason,
} from '../../../model/node/envoy-build.ts';
import { scalarText } from '../../../runtime/scalar-text.ts';
import type { MeshResources } from '../../push/mesh-resources.ts';
import type { ConnectionView, WatchView } from '../../xds/ads-observer.ts';
import type { RolloutWait } from '../../xds/rollout/rollout-waits.ts';
import { shortType } from '../../xds/short-type.ts';
import { type SyncState, syncStateOf } from './sync-state.ts';
import { clustersText, describeWait, type WaitDescription } from './wait-text.ts';

export interface TypeDescription {
  /** Type URL without the common prefix, such as `cluster.v3.Cluster`. */
  readonly type: string;
  readonly typeUrl: string;
  readonly state: SyncState;
  /** `*` for a wildcard subscription, otherwise the number of subscribed names. */
  readonly watches: '*' | number;
  readonly resources?: number;
  readonly sent: { readonly version: string; readonly nonce: string; readonly at: string };
  readonly acknowledged: { readonly version: string; readonly nonce: string };
  readonly rejected?: string;
  /** The pending response, or the change that waits for clusters. */
  readonly pending?: string;
  /** Clusters that the pending change waits for. `*` if unknown. */
  readonly awaits?: readonly string[];
  /** Clusters that did not become ready in time. Envoy uses them without the missing parts until their configuration changes. */
  readonly givenUp?: readonly string[];
  /** Changes that are delayed, kept, or sent with a timeout, with the reason (docs/changes-without-loss.md). */
  readonly waits?: readonly WaitDescription[];
  readonly moreWaits?: number;
  /** Clusters that were removed early, because the proxy kept too many unconfigured ones. */
  readonly evicted?: number;
}

export interface ProxyDescription {
  readonly connectionId: string;
  readonly proxy: string;
  readonly type: string;
  readonly namespace: string;
  readonly cluster: string;
  readonly version: string;
  readonly envoy?: string;
  readonly envoyProblem?: string;
  /** Configured features that gRPC does not support, for proxyless clients. */
  readonly limitations?: readonly string[];
  readonly address: string;
  readonly protocol: 'sotw' | 'delta';
  readonly connectedAt: string;
  readonly state: string;
  readonly context: string;
  readonly worst: SyncState;
  /** Response bytes that the proxy has not read. */
  readonly unflushedBytes: number;
  readonly slow: boolean;
  /** Rejected ones first. */
  readonly types: readonly TypeDescription[];
}

/** A proxy with this many unread bytes is shown as slow, and its next response waits (src/discovery/xds/stream/ads-stream.ts). */
const slowBytes = 64 * 1024;

const severity: Readonly<Record<SyncState, number>> = { ERROR: 0, STALE: 1, NOT_SENT: 2, SYNCED: 3 };

/** Per type: a proxy may keep a thousand clusters. */
const maxWaits = 20;

/** Sorted by severity, then by ID. */
export function describeProxies(
  connections: readonly ConnectionView[],
  resources: MeshResources,
  { allWaits = false }: { readonly allWaits?: boolean } = {},
): ProxyDescription[] {
  const nodes = new Map([...resources.nodes].map((node) => [node.proxy.id, node]));
  return connections
    .map((connection): ProxyDescription => {
      const node = nodes.get(connection.node);
      const types = connection.watches
        .map((watch) => describeType(watch, allWaits ? Number.POSITIVE_INFINITY : maxWaits))
        .sort((a, b) => Number(b.state === 'ERROR') - Number(a.state === 'ERROR'));
      const unflushedBytes = connection.unflushedBytes ?? 0;
      return {
        connectionId: connection.id,
        proxy: node?.proxy.name ?? connection.node,
        type: node?.proxy.type ?? '',
        namespace: node?.proxy.configNamespace ?? '',
        cluster: node?.proxy.clusterId ?? '',
        version: scalarText(connection.identity.metadata.ISTIO_VERSION),
        ...envoyOf(connection.identity.envoy),
        ...(node && node.limitations.length > 0 && { limitations: node.limitations }),
        address: connection.peer,
        protocol: connection.protocol,
        connectedAt: connection.connectedAt,
        state: connection.state,
        context: node?.context.version ?? '',
        worst: types.map(({ state }) => state).sort((a, b) => severity[a] - severity[b])[0] ?? 'NOT_SENT',
        unflushedBytes,
        slow: unflushedBytes > slowBytes,
        types,
      };
    })
    .sort(
      (a, b) =>
        severity[a.worst] - severity[b.worst] ||
        Number(b.slow) - Number(a.slow) ||
        (a.proxy < b.proxy ? -1 : a.proxy > b.proxy ? 1 : 0),
    );
}

function envoyOf(build: EnvoyBuild | undefined): Pick<ProxyDescription, 'envoy' | 'envoyProblem'> {
  const problems = [unsupportedEnvoyText(build?.version), wasmUnsupportedReason(build)].filter(
    (description) => description !== undefined,
  );
  return {
    ...(build?.version && { envoy: envoyVersionText(build.version) }),
    ...(problems.length > 0 && { envoyProblem: problems.join('; ') }),
  };
}

function describeType(watch: WatchView, waitLimit: number): TypeDescription {
  const state = syncStateOf(watch);
  const pending = pendingOf(watch);
  return {
    type: shortType(watch.typeUrl),
    typeUrl: watch.typeUrl,
    state,
    watches: watch.wildcard ? '*' : watch.names.length,
    ...(watch.resourcesSent !== undefined && { resources: watch.resourcesSent }),
    sent: { version: watch.versionSent, nonce: watch.nonceSent, at: watch.sentAt ?? '' },
    acknowledged: { version: watch.versionAcked, nonce: watch.nonceAcked },
    ...(state === 'ERROR' && { rejected: watch.lastError }),
    ...(pending !== undefined && { pending }),
    ...(watch.awaits !== undefined && { awaits: watch.awaits }),
    ...(watch.givenUp !== undefined && { givenUp: watch.givenUp }),
    ...(watch.waits !== undefined && describeWaits(watch.waits, waitLimit)),
    ...(watch.evicted !== undefined && { evicted: watch.evicted }),
  };
}

/** Kept configuration delays nothing, so it is last. */
function describeWaits(
  waits: readonly RolloutWait[],
  limit: number,
): Required<Pick<TypeDescription, 'waits'>> & Pick<TypeDescription, 'moreWaits'> {
  const sortedWaits = waits.toSorted((a, b) => Number(a.kind === 'kept') - Number(b.kind === 'kept'));
  const listedWaits = sortedWaits.slice(0, limit);
  const moreWaits = waits.length - listedWaits.length;
  return { waits: listedWaits.map(describeWait), ...(moreWaits > 0 && { moreWaits }) };
}

function pendingOf({ pending, nonceSent, nonceAcked, nonceRejected, awaits }: WatchView): string | undefined {
  if (awaits !== undefined) return `clusters that are not warmed yet: ${clustersText(awaits)}`;
  const isAcknowledged = nonceSent === '' || nonceSent === nonceAcked || nonceSent === nonceRejected;
  const waitText = isAcknowledged ? undefined : 'the ACK of the last response';
  const next = pending === undefined || pending === 'nothing' ? undefined : nextOf[pending];
  return [waitText, next].filter(Boolean).join(', then ') || undefined;
}

const nextOf = {
  names: 'newly requested names',
  changes: 'changes since',
  everything: 'all resources of the type',
} as const;

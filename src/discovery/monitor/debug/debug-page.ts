import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { tokenChallenge } from '../../../runtime/trace/debugger-access.ts';
import type { MissingWorkloads } from '../../ca/ledger/workload-ledger.ts';
import type { ChangeHistory } from '../../changes/change-history.ts';
import type { XdsSources } from '../../config/xds/xds-sources.ts';
import type { DatacenterView } from '../../consul/consul-datacenter.ts';
import type { EncodedCache } from '../../push/cache/encoded-cache.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import type { MeshNode, MeshResources } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import type { CertificateSources } from '../certificates/known-certificates.ts';
import type { HttpReply, HttpRequest } from '../http/http-server.ts';

export interface DebugSources {
  readonly state: MeshState;
  readonly resources: MeshResources;
  readonly cache: EncodedCache;
  readonly history: ChangeHistory;
  readonly certificateSources: (maxCertificates: number) => Omit<CertificateSources, 'secrets'>;
  readonly connections: () => readonly ConnectionView[];
  /**
   * Closes the stream, so that the proxy reconnects.
   * @returns `false` if the stream was already closed
   */
  readonly disconnect: (connection: ConnectionView) => boolean;
  readonly pushAll: () => void;
  readonly authority?: AuthorityPageSource;
  readonly configSources?: Pick<XdsSources, 'statuses' | 'confirmDeletions'>;
  readonly consul?: ConsulPageSource;
  readonly clusterId: string;
  /** `namespace/name` of the Secret that configures a remote cluster; empty without one. */
  readonly secretOfCluster?: (clusterId: string) => string;
  /** `undefined` if the API server of the cluster is reachable. */
  readonly unreachableCluster?: (clusterId: string) => string | undefined;
  /** `undefined` without webhooks. */
  readonly describeInjection?: () => object;
  /** `UNSAFE_ENABLE_ADMIN_ENDPOINTS`: enables pages that disrupt proxies. */
  readonly unsafeAdmin: boolean;
}

export interface ConsulPageSource {
  readonly datacenters: () => readonly DatacenterView[];
  readonly accept: (datacenter: string) => void;
}

export interface AuthorityPageSource {
  readonly describe: () => object;
  /** Workloads that a rotation waits for. */
  readonly missingWorkloads: () => MissingWorkloads | undefined;
  /** @returns the reason and the next step, if the authority cannot execute the order in its state */
  readonly rotate: (order: OperatorOrder['type']) => string | undefined;
  /** How operators start a rotation if replicas share the authority. */
  readonly orderedBy?: string;
}

/**
 * `operator` is on this host and has the debugger's token, `local user` has no token. `authenticated` is on another host and has an identity that may
 * access the page.
 */
export type PageCaller = 'operator' | 'local user' | 'authenticated';

export type PageRequest = Pick<HttpRequest, 'headers'> & {
  readonly query: URLSearchParams;
  readonly method: string;
  readonly caller: PageCaller;
  /** `undefined` if the caller may see proxies of all namespaces. */
  readonly onlyNamespace?: string;
};

export interface DebugPage {
  /** Path relative to `/debug/`. */
  readonly path: string;
  readonly description: string;
  /** Callers of other namespaces may request the page only for their own proxies. */
  readonly allowsOtherNamespaces?: boolean;
  /** A query that changes something requires POST, because a GET can come from any link or prefetch. */
  readonly changes?: (query: URLSearchParams) => boolean;
  readonly respond: (sources: DebugSources, request: PageRequest) => HttpReply | Promise<HttpReply>;
}

/** Text that Istio sends and tools match. */
const notConnectedText = 'Proxy not connected to this Pilot instance. It may be connected to another instance.\n';
const usage = 'You must provide a proxyID in the query string: ?proxyID=NODE_ID (/debug/adsz lists them)\n';

export function okReply(body: object): HttpReply {
  return { status: 200, body };
}

export function textReply(body: string, status = 200): HttpReply {
  return { status, body: `${body}\n` };
}

export const tokenRequired: HttpReply = {
  status: 401,
  body: 'unauthenticated: this request needs the token of the debugger (debugger-PORT.token in the run directory); pilot-discovery request sends it\n',
  headers: { 'www-authenticate': tokenChallenge },
};

/** Matches a node ID, a workload (`web-0.shop`), or the prefix of a connection ID. */
export function matchesProxyId({ id, node }: ConnectionView, proxyId: string): boolean {
  return node === proxyId || node.split('~')[2] === proxyId || id.startsWith(proxyId);
}

export function withProxy(
  { connections, resources }: DebugSources,
  { query, onlyNamespace }: PageRequest,
  respond: (connection: ConnectionView, node: MeshNode) => HttpReply | Promise<HttpReply>,
): HttpReply | Promise<HttpReply> {
  const proxyId = query.get('proxyID') ?? '';
  if (proxyId === '') return { status: 400, body: usage };
  const connection = connections().find((candidate) => matchesProxyId(candidate, proxyId));
  const node = connection && resources.nodesOf(connection.node)[0];
  if (connection === undefined || node === undefined) return { status: 404, body: notConnectedText };
  if (onlyNamespace !== undefined && node.proxy.configNamespace !== onlyNamespace) {
    return textReply(`forbidden: proxy ${proxyId} is not in namespace ${onlyNamespace}`, 403);
  }
  return respond(connection, node);
}

export function isParameterSet(value: string | null): boolean {
  return value !== null && value !== 'false';
}

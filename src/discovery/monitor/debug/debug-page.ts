/** What a debug page is, and what it may look at (spec/discovery.md §9.1). */
import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { tokenChallenge } from '../../../runtime/trace/debugger-access.ts';
import type { Missing } from '../../ca/ledger/workload-ledger.ts';
import type { ChangeHistory } from '../../changes/change-history.ts';
import type { XdsSources } from '../../config/xds/xds-sources.ts';
import type { DatacenterView } from '../../consul/consul-datacenter.ts';
import type { EncodedCache } from '../../push/cache/encoded-cache.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import type { MeshNode, MeshResources } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import type { CertificateSources } from '../certificates/known-certificates.ts';
import type { HttpAnswer, HttpRequest } from '../http/http-server.ts';

/** What the control plane knows, as far as pages show it. */
export interface DebugSources {
  readonly state: MeshState;
  readonly resources: MeshResources;
  readonly cache: EncodedCache;
  readonly history: ChangeHistory;
  /** @param max workloads that are listed */
  readonly certificateSources: (max: number) => Omit<CertificateSources, 'secrets'>;
  readonly connections: () => readonly ConnectionView[];
  /** Ends a stream; its proxy will connect again. False: it is gone already. */
  readonly disconnect: (connection: ConnectionView) => boolean;
  /** Everything goes to everyone. */
  readonly pushAll: () => void;
  /** Absent: nothing is signed here. */
  readonly authority?: AuthorityPageSource;
  /** Sources of configuration over xDS; absent: there can be none. */
  readonly configSources?: Pick<XdsSources, 'statuses' | 'confirmDeletions'>;
  /** Absent: Consul is no registry. */
  readonly consul?: ConsulPageSource;
  readonly clusterId: string;
  /** `namespace/name` of the Secret that names a cluster; empty, or absent: none does. */
  readonly secretOfCluster?: (clusterId: string) => string;
  /** Why the API server of a cluster does not respond; undefined: it does. */
  readonly unreachableCluster?: (clusterId: string) => string | undefined;
  /** Sidecar injector: settings and webhook configurations; absent: no webhooks are served. */
  readonly describeInjection?: () => object;
  /** `UNSAFE_ENABLE_ADMIN_ENDPOINTS`: pages that break something on purpose are there. */
  readonly unsafeAdmin: boolean;
}

/** Datacenters of Consul, as far as their page shows them. */
export interface ConsulPageSource {
  readonly datacenters: () => readonly DatacenterView[];
  /** Applies the response that is held back. */
  readonly accept: (datacenter: string) => void;
}

/** The authority, as far as its page shows it. */
export interface AuthorityPageSource {
  readonly describe: () => object;
  /** Whom a rotation waits for. */
  readonly missing: () => Missing | undefined;
  readonly rotate: (order: OperatorOrder['type']) => void;
  /** How orders are given instead, where replicas share the authority. */
  readonly orderedBy?: string;
}

/**
 * `operator`: on this host, with the debugger's token. `local user`: on this host, any user. `authenticated`: from elsewhere, with an
 * identity that may see the page.
 */
export type PageCaller = 'operator' | 'local user' | 'authenticated';

export type PageRequest = Pick<HttpRequest, 'headers'> & {
  readonly query: URLSearchParams;
  readonly method: string;
  readonly caller: PageCaller;
  /** The only namespace whose proxies the caller may look at; absent: all. */
  readonly onlyNamespace?: string;
};

export interface DebugPage {
  /** Below `/debug/`. */
  readonly path: string;
  readonly description: string;
  /** Whether a caller of any namespace may see it, for proxies of its own (§9.1). */
  readonly forEveryNamespace?: boolean;
  /** Whether a request with this query changes something: it needs the method POST, because any link or prefetch sends GET. */
  readonly changes?: (query: URLSearchParams) => boolean;
  readonly answer: (sources: DebugSources, request: PageRequest) => HttpAnswer | Promise<HttpAnswer>;
}

/** The words of the reference, which scripts look for. */
const notConnected = 'Proxy not connected to this Pilot instance. It may be connected to another instance.\n';
const usage = 'You must provide a proxyID in the query string: ?proxyID=NODE_ID (/debug/adsz lists them)\n';

export function ok(body: object): HttpAnswer {
  return { status: 200, body };
}

export function text(body: string, status = 200): HttpAnswer {
  return { status, body: `${body}\n` };
}

/** Without the token, on this host. */
export const tokenWanted: HttpAnswer = {
  status: 401,
  body: 'unauthenticated: this request needs the token of the debugger (debugger-PORT.token in the run directory); pilot-discovery request sends it\n',
  headers: { 'www-authenticate': tokenChallenge },
};

/** A proxy is named by its node id, by the workload in it (`web-0.shop`), or by a connection's id or how that begins. */
export function isMeant({ id, node }: ConnectionView, wanted: string): boolean {
  return node === wanted || node.split('~')[2] === wanted || id.startsWith(wanted);
}

/** Answers for the proxy of `?proxyID`: 400 when none is named, 404 when it is not here, 403 when it is none of the caller's business. */
export function withProxy(
  { connections, resources }: DebugSources,
  { query, onlyNamespace }: PageRequest,
  answer: (connection: ConnectionView, node: MeshNode) => HttpAnswer | Promise<HttpAnswer>,
): HttpAnswer | Promise<HttpAnswer> {
  const wanted = query.get('proxyID') ?? '';
  if (wanted === '') return { status: 400, body: usage };
  const connection = connections().find((candidate) => isMeant(candidate, wanted));
  const node = connection && resources.nodesOf(connection.node)[0];
  if (connection === undefined || node === undefined) return { status: 404, body: notConnected };
  if (onlyNamespace !== undefined && node.proxy.configNamespace !== onlyNamespace) {
    return text(`forbidden: proxy ${wanted} is not in namespace ${onlyNamespace}`, 403);
  }
  return answer(connection, node);
}

/** Whether a parameter such as `?clear=true` is set. */
export function isOn(value: string | null): boolean {
  return value !== null && value !== 'false';
}

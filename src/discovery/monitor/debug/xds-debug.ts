/**
 * Serves debug pages over xDS, which `istioctl proxy-status` and `istioctl proxy-config` request. Each request has one
 * response, without a subscription.
 */

import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { extensionType } from '../../../../machines/discovery/xds/ads-types.ts';
import { NodeSchema } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { ClientConfigSchema, ConfigStatus } from '../../../gen/envoy/service/status/v3/csds_pb.ts';
import { singleWorkloadOf } from '../../../identity/spiffe-id.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../../networking/index.ts';
import { appendCode } from '../../../runtime/errors.ts';
import { urlOf } from '../../../runtime/fences/http-fence.ts';
import { scalarText } from '../../../runtime/scalar-text.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import type { OneShotRequest, OneShotResponse } from '../../xds/one-shot.ts';
import { encodeValue } from '../../xds/responses/encoding.ts';
import { type DebugAccess, type DebugPermission, pageRejectionOf, permissionOfNamespace } from './debug-access.ts';
import { debugPages, respondWithPage } from './debug-endpoints.ts';
import { type DebugSources, withProxy } from './debug-page.ts';
import { jsonText } from './json-text.ts';
import { type SyncState, syncStateOf } from './sync-state.ts';

export const debugType = 'istio.io/debug';
export const syncStatusType = 'istio.io/debug/syncz';
export const configDumpType = 'istio.io/debug/config_dump';

interface DebugResource {
  readonly name: string;
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

type DebugResult = { readonly resources: readonly DebugResource[] } | { readonly error: string };

export interface XdsDebugOptions {
  readonly sources: DebugSources;
  readonly access: DebugAccess;
}

const clientConfigType = 'type.googleapis.com/envoy.service.status.v3.ClientConfig';
const reportedTypes = [listenerType, routeType, endpointType, clusterType, extensionType];

const statusOf: Readonly<Record<SyncState, ConfigStatus>> = {
  SYNCED: ConfigStatus.SYNCED,
  STALE: ConfigStatus.STALE,
  NOT_SENT: ConfigStatus.NOT_SENT,
  ERROR: ConfigStatus.ERROR,
};

type DebugHandler = (names: readonly string[], permission: DebugPermission) => Promise<DebugResult>;
type DebugRequest = Pick<OneShotRequest, 'typeUrl' | 'names' | 'identities'>;

export class XdsDebug {
  readonly #options: XdsDebugOptions;
  readonly #handlers: ReadonlyMap<string, DebugHandler> = new Map<string, DebugHandler>([
    [debugType, (names, permission) => this.#page(names, permission)],
    [syncStatusType, async (names, permission) => this.#syncStatus(names, permission)],
    [configDumpType, (names, permission) => this.#configDump(names, permission)],
  ]);

  constructor(options: XdsDebugOptions) {
    this.#options = options;
  }

  /** `undefined` if this is not a debug type. */
  respond({ typeUrl, names, identities }: DebugRequest): Promise<OneShotResponse> | undefined {
    const handler = this.#handlers.get(typeUrl);
    if (handler === undefined) return undefined;
    const namespace = singleWorkloadOf(identities)?.namespace;
    if (namespace === undefined) {
      const reason = appendCode(`${typeUrl} requires an authenticated client`, 'CLIENT_UNAUTHENTICATED');
      return Promise.resolve({ code: 'UNAUTHENTICATED', reason });
    }
    return handler(names, permissionOfNamespace(this.#options.access, namespace)).then((respond) =>
      'error' in respond
        ? { code: 'INVALID_ARGUMENT', reason: appendCode(respond.error, 'DEBUG_REQUEST_INVALID') }
        : this.#encodeResources(respond.resources),
    );
  }

  /** The resource name is the page's path with query, such as `syncz` or `config_dump?proxyID=x`. */
  async #page(names: readonly string[], permission: DebugPermission): Promise<DebugResult> {
    const [command, ...extraNames] = names;
    if (command === undefined || extraNames.length > 0) {
      return { error: `${debugType} requires exactly one resource name, such as syncz; ${pageListText()}` };
    }
    const url = urlOf(`/${command}`);
    if (url === undefined) return { error: `unknown debug page ${JSON.stringify(command)}; ${pageListText()}` };
    const request = { query: url.searchParams, headers: {}, method: 'GET', caller: 'authenticated' as const };
    const respond = await respondWithPage(this.#options.sources, permission, url.pathname.replace(/^\/+/, ''), request);
    if (respond === undefined) return { error: `unknown debug page ${JSON.stringify(command)}; ${pageListText()}` };
    const { status, body } = respond;
    const text = typeof body === 'string' ? body : jsonText(body, url.searchParams.has('pretty'));
    // Tools query the next replica after `not connected`, but stop after an error.
    if (status !== 200 && status !== 404) return { error: text.trimEnd() };
    return { resources: [{ name: command, typeUrl: debugType, value: Buffer.from(text) }] };
  }

  /** All proxies if no name is given. */
  #syncStatus(names: readonly string[], permission: DebugPermission): DebugResult {
    const page = debugPages.find(({ path }) => path === 'syncz')!;
    const rejectionReply = pageRejectionOf(page, permission);
    if (rejectionReply !== undefined) return { error: String(rejectionReply.body).trimEnd() };
    const { connections, resources } = this.#options.sources;
    const nodes = new Map([...resources.nodes].map((node) => [node.proxy.id, node]));
    const requestedNames = new Set(names);
    return {
      resources: connections().flatMap((connection) => {
        const node = nodes.get(connection.node);
        if (node === undefined) return [];
        const { id, name } = node.proxy;
        if (requestedNames.size > 0 && !requestedNames.has(id) && !requestedNames.has(name)) return [];
        const value = toBinary(ClientConfigSchema, clientConfig(connection, node));
        return [{ name, typeUrl: clientConfigType, value }];
      }),
    };
  }

  async #configDump(names: readonly string[], permission: DebugPermission): Promise<DebugResult> {
    const [proxyID, ...extraNames] = names;
    if (proxyID === undefined || extraNames.length > 0) {
      return { error: `${configDumpType} requires exactly one resource name, the ID of a proxy` };
    }
    let debugResources: DebugResource[] = [];
    const query = new URLSearchParams({ proxyID, include_eds: 'true' });
    const respond = await withProxy(
      this.#options.sources,
      { query, headers: {}, method: 'GET', caller: 'authenticated' as const, ...permission },
      async (connection, node) => {
        const { configDumpParts } = await import('./config-dump.ts');
        debugResources = configDumpParts(connection, node, query).map(({ typeUrl, value }) => ({
          name: proxyID,
          typeUrl,
          value,
        }));
        return { status: 200, body: '' };
      },
    );
    // Without resources in the response, tools query the next replica.
    return respond.status === 200 || respond.status === 404
      ? { resources: debugResources }
      : { error: String(respond.body).trimEnd() };
  }

  #encodeResources(resources: readonly DebugResource[]): OneShotResponse {
    const { sources } = this.#options;
    return {
      version: sources.state.context?.version ?? '',
      resources: resources.map(({ typeUrl, value, name }) => encodeValue(typeUrl, value, name)),
    };
  }
}

function clientConfig({ watches }: ConnectionView, { proxy }: MeshNode) {
  const metadata: JsonObject = {
    CLUSTER_ID: proxy.clusterId,
    NAMESPACE: proxy.configNamespace,
    ISTIO_VERSION: scalarText(proxy.metadata.ISTIO_VERSION),
  };
  return create(ClientConfigSchema, {
    node: create(NodeSchema, { id: proxy.name, metadata }),
    genericXdsConfigs: reportedTypes.map((typeUrl) => {
      const watch = watches.find((candidate) => candidate.typeUrl === typeUrl);
      return {
        typeUrl,
        configStatus: statusOf[syncStateOf(watch)],
        ...(watch !== undefined && { versionInfo: watch.versionSent }),
      };
    }),
  });
}

function pageListText(): string {
  return `known pages: ${debugPages.map(({ path }) => path).join(', ')}`;
}

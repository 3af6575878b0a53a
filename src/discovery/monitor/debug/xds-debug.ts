/**
 * Debug pages over xDS (spec/discovery.md §7.1, §9.1): what `istioctl proxy-status` and `istioctl proxy-config` ask for
 * where they reach the control plane by xDS alone. Answered once, nothing is watched.
 */

import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { extensionType } from '../../../../machines/discovery/xds/ads-types.ts';
import { NodeSchema } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { ClientConfigSchema, ConfigStatus } from '../../../gen/envoy/service/status/v3/csds_pb.ts';
import { oneWorkloadOf } from '../../../identity/spiffe-id.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../../networking/index.ts';
import { withCode } from '../../../runtime/errors.ts';
import { urlOf } from '../../../runtime/fences/http-fence.ts';
import { scalarText } from '../../../runtime/scalar-text.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import type { OneShotRequest, OneShotResponse } from '../../xds/one-shot.ts';
import { encodeValue } from '../../xds/responses/encoding.ts';
import { type DebugAccess, type Permission, permissionOfNamespace, refusalOf } from './debug-access.ts';
import { answerPage, debugPages } from './debug-endpoints.ts';
import { type DebugSources, withProxy } from './debug-page.ts';
import { jsonText } from './json-text.ts';
import { type SyncState, syncStateOf } from './sync-state.ts';

export const debugType = 'istio.io/debug';
export const syncStatusType = 'istio.io/debug/syncz';
export const configDumpType = 'istio.io/debug/config_dump';

/** One resource of an answer, not yet framed. */
interface DebugResource {
  readonly name: string;
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

type DebugAnswer =
  | { readonly resources: readonly DebugResource[] }
  /** Why there is no answer, in a sentence for the stream's status. */
  | { readonly error: string };

export interface XdsDebugOptions {
  readonly sources: DebugSources;
  readonly access: DebugAccess;
}

const clientConfigType = 'type.googleapis.com/envoy.service.status.v3.ClientConfig';
/** Types in the order in which tools list them. */
const reportedTypes = [listenerType, routeType, endpointType, clusterType, extensionType];

const statusOf: Readonly<Record<SyncState, ConfigStatus>> = {
  SYNCED: ConfigStatus.SYNCED,
  STALE: ConfigStatus.STALE,
  NOT_SENT: ConfigStatus.NOT_SENT,
  ERROR: ConfigStatus.ERROR,
};

type AnswerOf = (names: readonly string[], permission: Permission) => Promise<DebugAnswer>;
type Asked = Pick<OneShotRequest, 'typeUrl' | 'names' | 'identities'>;

/** Answers requests of the debug types. */
export class XdsDebug {
  readonly #options: XdsDebugOptions;
  readonly #answers: ReadonlyMap<string, AnswerOf> = new Map<string, AnswerOf>([
    [debugType, (names, permission) => this.#page(names, permission)],
    [syncStatusType, async (names, permission) => this.#syncStatus(names, permission)],
    [configDumpType, (names, permission) => this.#configDump(names, permission)],
  ]);

  constructor(options: XdsDebugOptions) {
    this.#options = options;
  }

  /** What a stream is answered; undefined when the type is none of these. */
  answer({ typeUrl, names, identities }: Asked): Promise<OneShotResponse> | undefined {
    const answerOf = this.#answers.get(typeUrl);
    if (answerOf === undefined) return undefined;
    const namespace = oneWorkloadOf(identities)?.namespace;
    if (namespace === undefined) {
      const reason = withCode(`${typeUrl} requires an authenticated client`, 'CLIENT_UNAUTHENTICATED');
      return Promise.resolve({ code: 'UNAUTHENTICATED', reason });
    }
    return answerOf(names, permissionOfNamespace(this.#options.access, namespace)).then((answer) =>
      'error' in answer
        ? { code: 'INVALID_ARGUMENT', reason: withCode(answer.error, 'DEBUG_REQUEST_INVALID') }
        : this.#framed(answer.resources),
    );
  }

  /** The only name is a page with its query: `syncz`, `config_dump?proxyID=x`. */
  async #page(names: readonly string[], permission: Permission): Promise<DebugAnswer> {
    const [command, ...others] = names;
    if (command === undefined || others.length > 0) {
      return { error: `${debugType} requires exactly one resource name, such as syncz; ${known()}` };
    }
    const url = urlOf(`/${command}`);
    if (url === undefined) return { error: `unknown debug page ${JSON.stringify(command)}; ${known()}` };
    const request = { query: url.searchParams, headers: {}, method: 'GET', caller: 'authenticated' as const };
    const answer = await answerPage(this.#options.sources, permission, url.pathname.replace(/^\/+/, ''), request);
    if (answer === undefined) return { error: `unknown debug page ${JSON.stringify(command)}; ${known()}` };
    const { status, body } = answer;
    const text = typeof body === 'string' ? body : jsonText(body, url.searchParams.has('pretty'));
    // A tool that reads `not connected` in a response tries the next replica; an error ends its search.
    if (status !== 200 && status !== 404) return { error: text.trimEnd() };
    return { resources: [{ name: command, typeUrl: debugType, value: Buffer.from(text) }] };
  }

  /** All proxies, or those that are named. */
  #syncStatus(names: readonly string[], permission: Permission): DebugAnswer {
    const page = debugPages.find(({ path }) => path === 'syncz')!;
    const refusal = refusalOf(page, permission);
    if (refusal !== undefined) return { error: String(refusal.body).trimEnd() };
    const { connections, resources } = this.#options.sources;
    const nodes = new Map([...resources.nodes].map((node) => [node.proxy.id, node]));
    const wanted = new Set(names);
    return {
      resources: connections().flatMap((connection) => {
        const node = nodes.get(connection.node);
        if (node === undefined) return [];
        const { id, name } = node.proxy;
        if (wanted.size > 0 && !wanted.has(id) && !wanted.has(name)) return [];
        const value = toBinary(ClientConfigSchema, clientConfig(connection, node));
        return [{ name, typeUrl: clientConfigType, value }];
      }),
    };
  }

  async #configDump(names: readonly string[], permission: Permission): Promise<DebugAnswer> {
    const [proxyID, ...others] = names;
    if (proxyID === undefined || others.length > 0) {
      return { error: `${configDumpType} requires exactly one resource name, the ID of a proxy` };
    }
    let parts: DebugResource[] = [];
    const query = new URLSearchParams({ proxyID, include_eds: 'true' });
    const answer = await withProxy(
      this.#options.sources,
      { query, headers: {}, method: 'GET', caller: 'authenticated' as const, ...permission },
      async (connection, node) => {
        const { configDumpParts } = await import('./config-dump.ts');
        parts = configDumpParts(connection, node, query).map(({ typeUrl, value }) => ({
          name: proxyID,
          typeUrl,
          value,
        }));
        return { status: 200, body: '' };
      },
    );
    // As above: without resources, a tool asks the next replica for the proxy.
    return answer.status === 200 || answer.status === 404
      ? { resources: parts }
      : { error: String(answer.body).trimEnd() };
  }

  #framed(resources: readonly DebugResource[]): OneShotResponse {
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

function known(): string {
  return `known pages: ${debugPages.map(({ path }) => path).join(', ')}`;
}

/** Lists and watches use other connections than requests. */
import type { OutgoingHttpHeaders } from 'node:http2';
import type { ClusterAccess } from '../access/cluster-access.ts';
import { ApiError, invalidResponse, statusOf } from '../api-failure.ts';
import { type ApiResource, apiVersionOf, pathOf } from '../api-resource.ts';
import type {
  ApiRequest,
  ApiServer,
  KubernetesObject,
  ListOptions,
  ObjectMeta,
  ObjectPage,
  ObjectSelection,
  WatchEnd,
  WatchEvent,
  WatchOptions,
} from '../api-server.ts';
import { excessOf, withExcess } from '../store/object-scan.ts';
import { isRecord, SharedTexts, trimObject } from '../store/trim.ts';
import { ConnectionPool } from './connection-pool.ts';
import type { ResponseReader } from './exchange.ts';
import { abortedError, rejectOnAbort } from './http2-connection.ts';
import { JsonLines, maxObjectBytes, parsedJson } from './json-lines.ts';
import { ListItems } from './list-items.ts';

/** In milliseconds. Charts with a shorter timeout abort. */
export interface ApiServerLimits {
  /** Timeout of DNS, TCP, TLS and the server's SETTINGS. */
  readonly connectMs: number;
  readonly responseMs: number;
  readonly listMs: number;
  /** Timeout for the rest of an incomplete line or response. */
  readonly idleMs: number;
  readonly pingMs: number;
  /** Time after `timeoutSeconds` at which the client ends a watch. */
  readonly watchGraceMs: number;
}

export const defaultApiServerLimits: ApiServerLimits = {
  connectMs: 5_000,
  responseMs: 30_000,
  listMs: 120_000,
  idleMs: 15_000,
  pingMs: 2_000,
  watchGraceMs: 15_000,
};

const userAgent = 'pilot-discovery';
const json = 'application/json';
const metadataOf = (kind: string): string => `${json};as=${kind};g=meta.k8s.io;v=v1,${json}`;

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export class Http2ApiServer implements ApiServer {
  readonly #access: ClusterAccess;
  readonly #limits: ApiServerLimits;
  readonly #watches: ConnectionPool;
  readonly #writeConnections: ConnectionPool;
  readonly #sharedTexts = new SharedTexts();
  readonly #closeController = new AbortController();

  constructor(access: ClusterAccess, limits: Partial<ApiServerLimits> = {}) {
    this.#access = access;
    this.#limits = { ...defaultApiServerLimits, ...limits };
    this.#watches = new ConnectionPool(access, this.#limits.connectMs);
    this.#writeConnections = new ConnectionPool(access, this.#limits.connectMs);
  }

  async list(
    resource: ApiResource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage> {
    const items: KubernetesObject[] = [];
    const collectItem = onItem ?? ((object) => void items.push(object));
    const reader = new ListItems((item) => {
      if (!hasMetadata(item)) throw invalidResponse('an object in the list has no metadata');
      collectItem(this.#trimObject(item, resource, options));
    });
    const query = {
      ...selectionQuery(options),
      resourceVersion: options.resourceVersion,
      limit: options.limit?.toString(),
      continue: options.continue,
    };
    const acceptHeader = options.metadataOnly === true ? metadataOf('PartialObjectMetadataList') : json;
    const path = this.#path(pathOf(resource, options.namespace), query);
    await this.#get(path, acceptHeader, asReader(reader), this.#limits.listMs, signal);
    const list = reader.finish();
    const metadata = isRecord(list) && isRecord(list.metadata) ? list.metadata : {};
    const { resourceVersion, continue: next } = metadata;
    if (typeof resourceVersion !== 'string' || resourceVersion === '')
      throw invalidResponse('the list has no resourceVersion');
    return { items, resourceVersion, ...(typeof next === 'string' && next !== '' && { continue: next }) };
  }

  async watch(
    resource: ApiResource,
    options: WatchOptions,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<WatchEnd> {
    const watchEnd = { events: 0, skipped: 0 };
    // Aborted on an ERROR event, so that further lines of the same chunk are ignored.
    const endController = new AbortController();
    const jsonLines = new JsonLines((watchLine) => {
      if (endController.signal.aborted || signal.aborted) return;
      const event = this.#eventOf(watchLine, resource, options);
      if (event === undefined) {
        watchEnd.skipped++;
        return;
      }
      watchEnd.events++;
      if (event.type === 'ERROR') endController.abort();
      onEvent(event);
    });
    const query = {
      ...selectionQuery(options),
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: options.resourceVersion,
      timeoutSeconds: options.timeoutSeconds.toString(),
      ...(options.sendInitialEvents === true && {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
      }),
    };
    const acceptHeader = options.metadataOnly === true ? metadataOf('PartialObjectMetadata') : json;
    const path = this.#path(pathOf(resource, options.namespace), query);
    const totalMs = options.timeoutSeconds * 1_000 + this.#limits.watchGraceMs;
    try {
      await this.#get(path, acceptHeader, asReader(jsonLines), totalMs, signal, endController.signal);
    } catch (error) {
      if (!endController.signal.aborted || signal.aborted || this.#closeController.signal.aborted) throw error;
    }
    return watchEnd;
  }

  async ping(signal: AbortSignal): Promise<number> {
    return await this.#watches.ping(this.#limits.pingMs, this.#withCloseSignal(signal));
  }

  reconnect(): void {
    this.#watches.closeAll();
  }

  async request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject> {
    const { method, body, permit, timeoutMs = this.#limits.responseMs } = request;
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const timeLimit = AbortSignal.timeout(timeoutMs);
    const endSignal = this.#withCloseSignal(signal, timeLimit);
    const chunks: Buffer[] = [];
    let length = 0;
    const reader: ResponseReader = {
      isBodyIncomplete: false,
      data(chunk) {
        length += chunk.length;
        if (length > maxObjectBytes) throw invalidResponse(`response exceeds ${maxObjectBytes} bytes`);
        chunks.push(Buffer.from(chunk));
      },
    };
    try {
      const identity = await rejectOnAbort(this.#access.headers(endSignal), endSignal);
      const headers = (): OutgoingHttpHeaders => {
        if (permit?.() === false)
          throw new ApiError({ kind: 'aborted', message: 'write cancelled: this replica is no longer the leader' });
        return {
          ...identity,
          ':method': method,
          ':path': this.#path(requestPath(request), { ...serverLimit(method, timeoutMs), ...request.query }),
          accept: json,
          'user-agent': userAgent,
          ...(bytes !== undefined && {
            'content-type': method === 'PATCH' ? patchTypes[request.patch ?? 'merge'] : json,
            'content-length': bytes.length,
          }),
        };
      };
      const limits = { responseMs: timeoutMs, totalMs: timeoutMs, idleMs: timeoutMs };
      await this.#writeConnections.send({ headers, body: bytes }, reader, limits, endSignal);
    } catch (error) {
      // Only the timeout of this request is a `timeout`, not other aborts.
      const isTimedOut = timeLimit.aborted || (error instanceof ApiError && error.failure.kind === 'timeout');
      if (isTimedOut && !signal.aborted && !this.#closeController.signal.aborted) {
        throw new ApiError({ kind: 'timeout', message: `no response within ${timeoutMs} ms` });
      }
      throw this.#handleUnauthorized(error);
    }
    const response = parsedJson(Buffer.concat(chunks).toString('utf8'), 'response');
    if (!isRecord(response)) throw invalidResponse('response must be a JSON object');
    return {
      ...response,
      metadata: isRecord(response.metadata) ? response.metadata : {},
    } as unknown as KubernetesObject;
  }

  close(): void {
    this.#closeController.abort();
    this.#watches.closeAll();
    this.#writeConnections.closeAll();
  }

  async #get(
    path: string,
    acceptHeader: string,
    reader: ResponseReader,
    totalMs: number,
    ...signals: readonly AbortSignal[]
  ): Promise<void> {
    const endSignal = this.#withCloseSignal(...signals);
    const { responseMs, idleMs } = this.#limits;
    try {
      const identity = await rejectOnAbort(this.#access.headers(endSignal), endSignal);
      const headers = { ...identity, ':method': 'GET', ':path': path, accept: acceptHeader, 'user-agent': userAgent };
      await this.#watches.send({ headers: () => headers }, reader, { responseMs, totalMs, idleMs }, endSignal);
    } catch (error) {
      throw this.#handleUnauthorized(error);
    }
  }

  #handleUnauthorized(error: unknown): unknown {
    if (statusOf(error) === 401) this.#access.invalidateCredentials();
    return error;
  }

  /** Uses a single `AbortSignal.any`, because Node keeps nested signals in memory as long as their sources. */
  #withCloseSignal(...signals: readonly AbortSignal[]): AbortSignal {
    if (this.#closeController.signal.aborted) throw abortedError();
    return AbortSignal.any([...signals, this.#closeController.signal]);
  }

  #path(path: string, query: Readonly<Record<string, string | undefined>>): string {
    const setParameters = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const search = new URLSearchParams(setParameters).toString();
    const basePath = this.#access.server.pathname.replace(/\/+$/, '');
    return `${basePath}${path}${search === '' ? '' : `?${search}`}`;
  }

  #trimObject(
    object: Readonly<Record<string, unknown>> & { readonly metadata: ObjectMeta },
    resource: ApiResource,
    selection: ObjectSelection,
  ): KubernetesObject {
    const excessText = excessOf(object);
    if (excessText === undefined) return trimObject(object, resource, this.#sharedTexts, selection);
    const { metadata } = object;
    return withExcess({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata }, excessText);
  }

  #eventOf(watchLine: unknown, resource: ApiResource, selection: ObjectSelection): WatchEvent | undefined {
    if (!isRecord(watchLine) || !isRecord(watchLine.object))
      throw invalidResponse('a line of the watch is not a watch event');
    const { type, object } = watchLine;
    switch (type) {
      case 'ERROR':
        return { type, object };
      case 'BOOKMARK': {
        const bookmark = { metadata: { name: '', ...(isRecord(object.metadata) && object.metadata) } };
        if (!hasMetadata(bookmark)) throw invalidResponse('a watch bookmark has no resourceVersion');
        return { type, object: bookmark };
      }
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED': {
        const isExpectedKind =
          object.kind === resource.kind || (selection.metadataOnly === true && object.kind === 'PartialObjectMetadata');
        if (!isExpectedKind) return undefined;
        if (!hasMetadata(object)) throw invalidResponse('an object in the watch has no metadata');
        return { type, object: this.#trimObject(object, resource, selection) };
      }
      default:
        return undefined;
    }
  }
}

function asReader(parser: JsonLines | ListItems): ResponseReader {
  return {
    data: (chunk) => parser.push(chunk),
    get isBodyIncomplete() {
      return parser.isIncomplete;
    },
  };
}

function selectionQuery({ fieldSelector, labelSelector }: ObjectSelection): Record<string, string | undefined> {
  return { fieldSelector, labelSelector };
}

/** Query parameter of writes, so that the server does not apply them after the client's timeout. */
function serverLimit(method: ApiRequest['method'], timeoutMs: number): Record<string, string> {
  return method === 'GET' ? {} : { timeout: timeoutMs % 1_000 === 0 ? `${timeoutMs / 1_000}s` : `${timeoutMs}ms` };
}

function requestPath({ resource, namespace, name, subresource }: ApiRequest): string {
  const pathSegments = [name, subresource].filter((segment) => segment !== undefined);
  return [pathOf(resource, namespace), ...pathSegments.map(encodeURIComponent)].join('/');
}

/** Checks the types of fields that informers use. An object with a numeric version would never be found again. */
function hasMetadata(value: unknown): value is Readonly<Record<string, unknown>> & { readonly metadata: ObjectMeta } {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { name, namespace = '', uid = '', resourceVersion = '', generation = 0 } = value.metadata;
  return (
    [name, namespace, uid, resourceVersion].every((text) => typeof text === 'string') && Number.isInteger(generation)
  );
}

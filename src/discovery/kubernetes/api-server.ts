/**
 * One API server, as informers, electors and status writers see it. Every operation rejects with an `ApiError` and with nothing
 * else, ends soon after its signal is aborted, and has a limit of its own for a server that does not answer. Nothing is tried again
 * but what the server said that it had not looked at (HTTP/2's refused streams).
 */
import type { Status } from './api-failure.ts';
import type { Resource } from './api-resource.ts';

/** An object of any kind, trimmed: without managed fields, and of pods, nodes and Secrets only what is read of them. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

export interface ObjectMeta {
  readonly name: string;
  /** Absent for what is in no namespace. */
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** Which objects of a resource. */
export interface Selection {
  /** Absent: of all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** Nothing but `metadata` is sent. */
  readonly metadataOnly?: boolean;
  /** Everything is kept, and of Secrets not only what credentials are of: who asks for it must select few. */
  readonly keepsData?: boolean;
  /** Of ConfigMaps and Secrets the SHA-256 of each value is kept (`digestOf` in `trim.ts`), and not the value. */
  readonly digestsData?: boolean;
}

export interface ListOptions extends Selection {
  /** `0`: any age, from the server's cache. Another: not older than it. Absent: what is true now. */
  readonly resourceVersion?: string;
  /** Objects of a page. A server may send more: with version `0` it sends all. */
  readonly limit?: number;
  /** What the page before ended with. */
  readonly continue?: string;
}

export interface ObjectPage {
  readonly items: readonly KubernetesObject[];
  /** Of the list: where a watch goes on. Never that of an item. */
  readonly resourceVersion: string;
  /** Absent on the last page. */
  readonly continue?: string;
}

export interface WatchOptions extends Selection {
  /** Events after it; with `sendInitialEvents` the first list is not older. Absent: with `sendInitialEvents` what is true now. */
  readonly resourceVersion?: string;
  /** The list comes first, as ADDED events, and a bookmark that ends it (`endsInitialEvents`). Not all servers can. */
  readonly sendInitialEvents?: boolean;
  /** After it the server ends the watch: no failure. */
  readonly timeoutSeconds: number;
}

/** Bookmarks are always asked for. Events of unknown types and objects of another kind are left out, and counted. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: KubernetesObject }
  /** The last one: `failureOfStatus(object)` says what. */
  | { readonly type: 'ERROR'; readonly object: Status };

/** A watch that the server ended as it should, at its deadline or sooner. */
export interface WatchEnd {
  /** How many came: none, and within a second, is a server that cannot answer this version. */
  readonly events: number;
  /** Left out: unknown types, other kinds. */
  readonly skipped: number;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly resource: Resource;
  readonly namespace?: string;
  /** Absent for a POST of a new object. */
  readonly name?: string;
  /** `status`, `token`. */
  readonly subresource?: string;
  readonly body?: unknown;
  /** How the body of a PATCH is meant; by default a merge patch. An apply needs `fieldManager` in the query. */
  readonly patch?: 'merge' | 'json' | 'apply';
  readonly query?: Readonly<Record<string, string>>;
  /** Of the answer, from now; the server is told it too, so that nothing takes effect much later. */
  readonly timeoutMs?: number;
  /**
   * Asked in the same turn in which the bytes go out, after everything that is waited for: false, and nothing is sent
   * (`aborted`). An elected writer's term is looked at there.
   */
  readonly permit?: () => boolean;
}

export interface ApiServer {
  /**
   * A page of objects.
   *
   * @param onItem is handed each object as it comes, so that a page of large ones is never in memory as a whole; the page then has no items.
   *   It must not throw
   */
  list(
    resource: Resource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage>;
  /**
   * Hands on each event as its line comes. It ends when the server ends it; an ERROR event ends it as well.
   *
   * @param onEvent called one by one and never after the promise is settled; must not throw
   */
  watch(
    resource: Resource,
    options: WatchOptions,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<WatchEnd>;
  /** Asks the connection of watches whether its other end lives; opens it when there is none. @returns the time it took */
  ping(signal: AbortSignal): Promise<number>;
  /** The connection of watches is ended, with what runs on it (`closed`); the next operation opens a new one. */
  reconnect(): void;
  /** Everything else, one request and one answer, on a connection of its own. */
  request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject>;
  /** Everything ends, `aborted`. */
  close(): void;
}

/** The bookmark that ends the initial events of a watch: all that there was has come. */
export function endsInitialEvents(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
}

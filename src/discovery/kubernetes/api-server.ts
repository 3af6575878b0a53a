/**
 * Port to one API server, for informers, electors and status writers. Every operation rejects only with an `ApiError`, ends soon after its signal is
 * aborted, and has a limit for a server that does not respond. Only requests that the server reports as not processed (HTTP/2 REFUSED_STREAM) are
 * retried.
 */
import type { Status } from './api-failure.ts';
import type { ApiResource } from './api-resource.ts';

/** An object of any kind, trimmed: without managed fields, and of Pods, Nodes and Secrets only the fields that are read. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

export interface ObjectMeta {
  readonly name: string;
  /** Absent for cluster-scoped objects. */
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

export interface Selection {
  /** If absent, all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: boolean;
  /** Keeps all data, also of Secrets without credentials. The selection must be narrow. */
  readonly keepsData?: boolean;
  /** Keeps the SHA-256 of each value of ConfigMaps and Secrets (`digestOf` in `trim.ts`) instead of the value. */
  readonly digestsData?: boolean;
}

export interface ListOptions extends Selection {
  /** `0`: any version from the server's cache. Another: not older than it. Absent: the newest. */
  readonly resourceVersion?: string;
  /** Objects per page. A server may send more: with version `0` it sends all. */
  readonly limit?: number;
  /** Token of the previous page. */
  readonly continue?: string;
}

export interface ObjectPage {
  readonly items: readonly KubernetesObject[];
  /** Version of the list, from which a watch continues. Never the version of an item. */
  readonly resourceVersion: string;
  readonly continue?: string;
}

export interface WatchOptions extends Selection {
  /** Sends events after it; with `sendInitialEvents` the initial list is not older. Absent with `sendInitialEvents`: the newest. */
  readonly resourceVersion?: string;
  /** Sends the list first, as ADDED events that a bookmark ends (`endsInitialEvents`). Not all servers support it. */
  readonly sendInitialEvents?: boolean;
  /** The server ends the watch after it, which is no failure. */
  readonly timeoutSeconds: number;
}

/** Bookmarks are always requested. Events of unknown types and objects of other kinds are skipped and counted. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: KubernetesObject }
  /** The last event; `failureOfStatus(object)` is the reason. */
  | { readonly type: 'ERROR'; readonly object: Status };

/** Result of a watch that the server ended regularly, at its deadline or before. */
export interface WatchEnd {
  /** Number of events. None within a second indicates a server that cannot serve this version. */
  readonly events: number;
  /** Number of skipped events: unknown types, other kinds. */
  readonly skipped: number;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly resource: ApiResource;
  readonly namespace?: string;
  /** Absent for a POST of a new object. */
  readonly name?: string;
  readonly subresource?: string;
  readonly body?: unknown;
  /** Type of a PATCH body; by default a merge patch. An apply needs `fieldManager` in the query. */
  readonly patch?: 'merge' | 'json' | 'apply';
  readonly query?: Readonly<Record<string, string>>;
  /** Limit for the response, also sent to the server so that a late write is not applied. */
  readonly timeoutMs?: number;
  /**
   * Checked in the turn that sends the bytes, after everything that is awaited. If `false`, nothing is sent (`aborted`). An elected writer checks its
   * term here.
   */
  readonly permit?: () => boolean;
}

export interface ApiServer {
  /**
   * Reads a page of objects.
   *
   * @param onItem receives each object as it arrives, so that a large page is never in memory as a whole; the page then has no items. Must not throw
   */
  list(
    resource: ApiResource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage>;
  /**
   * Passes on each event as its line arrives. Ends when the server ends the watch, or with an ERROR event.
   *
   * @param onEvent called for one event at a time and never after the promise settles; must not throw
   */
  watch(
    resource: ApiResource,
    options: WatchOptions,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<WatchEnd>;
  /** Checks that the connection of watches is alive; opens it if necessary. @returns the round-trip time in milliseconds */
  ping(signal: AbortSignal): Promise<number>;
  /** Closes the connection of watches and its streams (`closed`). The next operation opens a new one. */
  reconnect(): void;
  /** Sends one request on a separate connection. */
  request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject>;
  /** Ends all operations with `aborted`. */
  close(): void;
}

/** Reports whether an event is the bookmark that ends the initial events of a watch. */
export function endsInitialEvents(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
}

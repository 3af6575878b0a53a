/**
 * Port to an API server, for informers, electors and status writers. All operations reject only with an `ApiError`,
 * end soon after their signal is aborted, and have a time limit. Only requests that the server reports as not
 * processed (HTTP/2 REFUSED_STREAM) are retried.
 */
import type { Status } from './api-failure.ts';
import type { ApiResource } from './api-resource.ts';

/** An object of any kind without managed fields. Pods, Nodes and Secrets only contain the fields that are used. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

export interface ObjectMeta {
  readonly name: string;
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
  /** Absent for all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: boolean;
  /** Keeps all data, including Secrets that contain no credentials. The selection must be narrow. */
  readonly keepsData?: boolean;
  /** Keeps the SHA-256 of each value in ConfigMaps and Secrets instead of the value (`digestOf` in `trim.ts`). */
  readonly digestsData?: boolean;
}

export interface ListOptions extends Selection {
  /** `0`: any version in the server's cache. Other values: not older than this. Absent: the newest. */
  readonly resourceVersion?: string;
  /** Objects per page. A server may send more: with version `0`, it sends all. */
  readonly limit?: number;
  /** Token from the previous page. */
  readonly continue?: string;
}

export interface ObjectPage {
  readonly items: readonly KubernetesObject[];
  /** Version of the list, from which a watch continues. Not the version of an item. */
  readonly resourceVersion: string;
  readonly continue?: string;
}

export interface WatchOptions extends Selection {
  /** Only later events are sent. With `sendInitialEvents`, minimum version of the initial list; absent: the newest. */
  readonly resourceVersion?: string;
  /**
   * Sends the list first, as ADDED events followed by a bookmark (`endsInitialEvents`). Not all servers support this.
   */
  readonly sendInitialEvents?: boolean;
  /** The server ends the watch after this time, which is not a failure. */
  readonly timeoutSeconds: number;
}

/** Bookmarks are always requested. Unknown event types and objects of other kinds are skipped and counted. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: KubernetesObject }
  /** The last event. Its reason is `failureOfStatus(object)`. */
  | { readonly type: 'ERROR'; readonly object: Status };

/** Result of a watch that the server ended without an error. */
export interface WatchEnd {
  /** Number of events. None within a second indicates that the server cannot serve this version. */
  readonly events: number;
  /** Number of skipped events: unknown types, other kinds. */
  readonly skipped: number;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly resource: ApiResource;
  readonly namespace?: string;
  /** Absent for a POST. */
  readonly name?: string;
  readonly subresource?: string;
  readonly body?: unknown;
  /** Type of a PATCH body, default: merge patch. An apply needs `fieldManager` in the query. */
  readonly patch?: 'merge' | 'json' | 'apply';
  readonly query?: Readonly<Record<string, string>>;
  /** Time limit of the response. Also sent to the server, so that it does not apply the write later. */
  readonly timeoutMs?: number;
  /**
   * Checked in the turn that sends the bytes, after everything asynchronous. If `false`, nothing is sent (`aborted`).
   * Elected writers check their term here.
   */
  readonly permit?: () => boolean;
}

export interface ApiServer {
  /**
   * Reads a page of objects.
   *
   * @param onItem receives each object when it arrives, so that a large page is never completely in memory. The
   * returned page has no items. Must not throw.
   */
  list(
    resource: ApiResource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage>;
  /**
   * Passes on events one by one. Ends with the watch, or with an ERROR event.
   *
   * @param onEvent never called after the promise settles. Must not throw.
   */
  watch(
    resource: ApiResource,
    options: WatchOptions,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<WatchEnd>;
  /**
   * Checks the connection of watches, or opens it.
   *
   * @returns round-trip time in milliseconds
   */
  ping(signal: AbortSignal): Promise<number>;
  /** Closes the connection of watches, whose streams fail with `closed`. The next operation opens another one. */
  reconnect(): void;
  /** Sends one request on another connection than watches. */
  request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject>;
  /** Ends all operations with `aborted`. */
  close(): void;
}

/** Whether the event is the bookmark after the initial events of a watch. */
export function endsInitialEvents(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
}

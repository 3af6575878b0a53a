/**
 * All operations reject only with an `ApiError`, end soon after their signal is aborted, and have a timeout. Only requests that the server reports as
 * not processed (HTTP/2 REFUSED_STREAM) are retried.
 */
import type { StatusBody } from './api-failure.ts';
import type { ApiResource } from './api-resource.ts';

/** Pods, Nodes and Secrets contain only the fields that are used. */
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

export interface ObjectSelection {
  /** Absent for all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: boolean;
  /** Whether to keep all data, including Secrets that contain no credentials. The selection must be narrow. */
  readonly keepsData?: boolean;
  /** Whether to keep the SHA-256 of each value in ConfigMaps and Secrets instead of the value (`digestOf` in `trim.ts`). */
  readonly digestsData?: boolean;
}

export interface ListOptions extends ObjectSelection {
  /** `0` allows any version in the server's cache, another value is the minimum version. If absent, the newest version. */
  readonly resourceVersion?: string;
  /** Objects per page. A server can send more: for version `0`, it sends all. */
  readonly limit?: number;
  readonly continue?: string;
}

export interface ObjectPage {
  readonly items: readonly KubernetesObject[];
  /** Version of the list, from which a watch can continue. It differs from the versions of items. */
  readonly resourceVersion: string;
  readonly continue?: string;
}

export interface WatchOptions extends ObjectSelection {
  /** Version after which events are sent. With `sendInitialEvents`, the minimum version of the initial list, or the newest if absent. */
  readonly resourceVersion?: string;
  /** Whether the server first sends the list as ADDED events, followed by a bookmark that marks its end. Not all servers support this. */
  readonly sendInitialEvents?: boolean;
  /** Time after which the server ends the watch, which is not a failure. */
  readonly timeoutSeconds: number;
}

/** Bookmarks are always requested. Unknown event types and objects of other kinds are skipped and counted. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: KubernetesObject }
  /** The last event. Its reason is `failureOfStatus(object)`. */
  | { readonly type: 'ERROR'; readonly object: StatusBody };

export interface WatchEnd {
  /** If the watch ends within a second without events, the server probably cannot serve this version. */
  readonly events: number;
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
  /** Also sent to the server, so that it does not apply the write later. */
  readonly timeoutMs?: number;
  /**
   * Called synchronously before the bytes are sent. If it returns `false`, nothing is sent (`aborted`). Elected writers use it to check their term.
   */
  readonly permit?: () => boolean;
}

export interface ApiServer {
  /** @param onItem must not throw. The returned page has no items. */
  list(
    resource: ApiResource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage>;
  /** @param onEvent never called after the promise settles. Must not throw. */
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
  /** The streams of watches fail with `closed`. The next operation opens another connection. */
  reconnect(): void;
  /** Uses another connection than watches. */
  request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject>;
  /** Ends all operations with `aborted`. */
  close(): void;
}

export function isInitialEventsEnd(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
}

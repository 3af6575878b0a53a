import type { InspectionEvent } from 'xstate';
import type { PushInvariant } from './discovery-invariants.ts';
import type { MeshEvent, MeshType } from './discovery-mesh.ts';

/** Maximum number of each kind of choice in a run. */
export interface PushBounds {
  readonly changes: number;
  /** Faults: rejections, stale requests, broken streams, contexts that cannot be built. */
  readonly faults: number;
}

export interface PushWorldOptions {
  readonly clients: readonly ('sotw' | 'delta')[];
  readonly types: readonly MeshType[];
  readonly events: readonly MeshEvent[];
  readonly throttle: number;
  /** Maximum unread responses per client; 0: unlimited, and clients read immediately unless they stall. */
  readonly window: number;
  /** All clients are connected and served at the start. */
  readonly startsConnected: boolean;
  /** Possible changes of the registry itself; default: none. */
  readonly registryChanges?: readonly MeshEvent[];
  /** The first list of a registry arrives late or never, and clients connect after the limit for it. Excludes `startsConnected`. */
  readonly listsLate?: boolean;
  /** The registry can be lost (`lost`), a fault. It is retried, and then sends its list again (`listed`). */
  readonly registryFails?: boolean;
  readonly requestsLate?: boolean;
  /** A deliberate bug: a push skips a stream that watches nothing, so the stream keeps its context. */
  readonly skipsUnsubscribed?: boolean;
  readonly invariants?: readonly PushInvariant[];
  /** Default: all kinds. */
  readonly faults?: readonly string[];
  /** A failed build is a bug in chartpilot, which no diagram shows. */
  readonly buildsFail?: boolean;
  /** Whether a node trusts the keys in an order instead of those in the skipped contexts (default). */
  readonly trustsOrders?: boolean;
  /** A deliberate bug: a stream builds a delayed response from the source's current contents. */
  readonly buildsLate?: boolean;
  /** A deliberate bug: the server keeps the slot of a proxy until all of its responses have been read. */
  readonly waitsForReaders?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
}

/** Bounds and settings of an exploration of the push path. */
import type { InspectionEvent } from 'xstate';
import type { PushInvariant } from './discovery-invariants.ts';
import type { MeshEvent, MeshType } from './discovery-mesh.ts';

/** Maximum number of each kind of choice in a run. */
export interface PushBounds {
  /** Changes of the configuration. */
  readonly changes: number;
  /** Rejections, stale requests, broken streams, contexts that cannot be built. */
  readonly faults: number;
}

export interface PushWorldOptions {
  /** Protocols of the clients. */
  readonly clients: readonly ('sotw' | 'delta')[];
  readonly types: readonly MeshType[];
  /** Possible changes. */
  readonly events: readonly MeshEvent[];
  readonly throttle: number;
  /** Unread responses per client; 0: unlimited, and clients read at once unless they stall. */
  readonly window: number;
  /** Starts with all clients connected and served. */
  readonly settled: boolean;
  /** Possible changes of the registry itself; default none. */
  readonly moves?: readonly MeshEvent[];
  /** The first list of a registry comes late, if at all: clients connect only afterwards. Excludes `settled`. */
  readonly listsLate?: boolean;
  /** The registry may be lost (`lost`), a fault: it is retried, and then lists everything again (`listed`). */
  readonly registryFails?: boolean;
  /** A client connects and watches nothing until it sends a request later. */
  readonly asksLate?: boolean;
  /** A push skips a stream that watches nothing, which keeps its context. A deliberate bug. */
  readonly passesOverIdle?: boolean;
  readonly invariants?: readonly PushInvariant[];
  /** Possible kinds of faults; default all. */
  readonly faults?: readonly string[];
  /** False: a context can always be built. A failed build is a bug in chartpilot, which no diagram shows. */
  readonly buildsFail?: boolean;
  /** How a node determines the changes that concern it; default exactly. For a source with a deliberate bug. */
  readonly trustsOrders?: boolean;
  /** A stream builds a response from the source's current contents when its turn comes. A deliberate bug. */
  readonly makesLate?: boolean;
  /** The server keeps the turn of a proxy until all of its responses have been read. A deliberate bug. */
  readonly waitsForReaders?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
}

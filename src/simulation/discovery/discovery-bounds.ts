/** How much an exploration of the push path may hold, and what its world is like. */
import type { InspectionEvent } from 'xstate';
import type { PushInvariant } from './discovery-invariants.ts';
import type { MeshEvent, MeshType } from './discovery-mesh.ts';

/** How much of each kind a run may hold. */
export interface PushBounds {
  /** Things that change in the configuration. */
  readonly changes: number;
  /** Rejections, stale answers, streams that break, contexts that cannot be built. */
  readonly faults: number;
}

export interface PushWorldOptions {
  /** Protocols of the clients. */
  readonly clients: readonly ('sotw' | 'delta')[];
  readonly types: readonly MeshType[];
  /** What may change. */
  readonly events: readonly MeshEvent[];
  readonly throttle: number;
  /** Responses that may be under way to a client that does not read; 0: any number, and it reads at once, unless it stalls. */
  readonly window: number;
  /** Begins with everybody connected and served. */
  readonly settled: boolean;
  /** What may change in a registry that nobody feeds; none by default. */
  readonly moves?: readonly MeshEvent[];
  /** The first list of a registry comes late, if at all: clients are not there before. Not together with `settled`. */
  readonly listsLate?: boolean;
  /** The registry may be lost (`lost`), a fault: it is tried again, and then tells all that it has (`listed`). */
  readonly registryFails?: boolean;
  /** A client joins and watches nothing until it asks, in its own time. */
  readonly asksLate?: boolean;
  /** A stream that watches nothing is passed over by a push, and stays with its context. Broken on purpose. */
  readonly passesOverIdle?: boolean;
  readonly invariants?: readonly PushInvariant[];
  /** Kinds of faults that there may be; all, unless said. */
  readonly faults?: readonly string[];
  /** False: a context can always be built. That it cannot is a fault of ours, which no diagram shows. */
  readonly buildsFail?: boolean;
  /** How a node finds out what concerns it; else exactly. For a source that is broken on purpose. */
  readonly trustsOrders?: boolean;
  /** A stream makes a response of what the source has when its turn comes. Broken on purpose, too. */
  readonly makesLate?: boolean;
  /** The server keeps the turn of a proxy until all of its responses have left. Broken on purpose as well. */
  readonly waitsForReaders?: boolean;
  readonly inspect?: (event: InspectionEvent) => void;
}

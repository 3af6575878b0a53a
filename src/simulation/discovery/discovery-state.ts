import type { AnyActorRef } from 'xstate';
import type { ProxiesServe } from '../../../machines/discovery/protocol.ts';
import type { InvariantViolation } from '../../debugger/explore/world.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import type { BuildInput } from './discovery-charts.ts';
import { type ClientState, newClient } from './discovery-client.ts';
import type { Wire } from './discovery-invariants.ts';
import { type Contents, firstContents, type MeshContext, type MeshEvent, unlistedContents } from './discovery-mesh.ts';
import type { StreamState } from './discovery-stream.ts';

/** Immutable: every change creates a new object. */
export interface PushWorldState {
  readonly changes: number;
  readonly faults: number;
  /** Number of changes so far. */
  readonly changed: number;
  readonly contents: Contents;
  /** Contents from which a context can be built; includes registry changes once services have been computed. */
  readonly computed: Contents;
  /** Changes of the registry that are not in {@link computed}. */
  readonly moved: readonly MeshEvent[];
  /** The registry has reported its first list. */
  readonly isListed: boolean;
  /** The registry is running, and has sent its list since its last loss. */
  readonly isInStep: boolean;
  /** The wait for the registry's list has timed out. */
  readonly isLate: boolean;
  /** The pending computation of services. */
  readonly computing: AnyActorRef | undefined;
  readonly registries: AnyActorRef | undefined;
  /** Actor of the only registry. */
  readonly feed: AnyActorRef | undefined;
  readonly contexts: readonly MeshContext[];
  /** A context that is being built, with the sources' contents at its start. */
  readonly build: { readonly call: AnyActorRef; readonly input: BuildInput; readonly contents: Contents } | undefined;
  readonly server: AnyActorRef | undefined;
  readonly orders: readonly { readonly order: ProxiesServe; readonly served: number }[];
  readonly streams: ReadonlyMap<number, StreamState>;
  readonly effects: ReadonlyMap<number, AnyActorRef>;
  readonly connections: ReadonlyMap<number, AnyActorRef>;
  readonly clients: readonly ClientState[];
  readonly streamCount: number;
  /** Number of responses so far. */
  readonly responses: number;
  readonly wires: ReadonlyMap<number, Wire>;
  readonly owed: ReadonlyMap<number, readonly string[]>;
  readonly violations: readonly InvariantViolation[];
}

/** The state before anything has started or may change. */
export function firstState({ clients, types, listsLate = false }: PushWorldOptions): PushWorldState {
  return {
    changes: 0,
    faults: 0,
    changed: 0,
    contents: firstContents,
    computed: listsLate ? unlistedContents : firstContents,
    moved: [],
    isListed: !listsLate,
    isInStep: false,
    isLate: false,
    computing: undefined,
    registries: undefined,
    feed: undefined,
    contexts: [],
    build: undefined,
    server: undefined,
    orders: [],
    streams: new Map(),
    effects: new Map(),
    connections: new Map(),
    clients: clients.map((protocol) => newClient(protocol === 'delta', types)),
    streamCount: 0,
    responses: 0,
    wires: new Map(),
    owed: new Map(),
    violations: [],
  };
}

/** Everything that a moment of the simulated push path consists of. */
import type { AnyActorRef } from 'xstate';
import type { ProxiesServe } from '../../../machines/discovery/protocol.ts';
import type { Violation } from '../../debugger/explore/world.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import type { BuildInput } from './discovery-charts.ts';
import { type ClientState, newClient } from './discovery-client.ts';
import type { Wire } from './discovery-invariants.ts';
import { type Contents, firstContents, type MeshContext, type MeshEvent, unlistedContents } from './discovery-mesh.ts';
import type { StreamState } from './discovery-stream.ts';

/** Immutable: every change makes a new one. */
export interface PushWorldState {
  readonly changes: number;
  readonly faults: number;
  /** Things that have changed so far. */
  readonly changed: number;
  /** What the sources hold. */
  readonly contents: Contents;
  /** What a context can be built of: what a registry has by itself is in it when services have been made. */
  readonly made: Contents;
  /** What has changed in the registry and is not in {@link made}. */
  readonly moved: readonly MeshEvent[];
  /** The registry has told its first list. */
  readonly isListed: boolean;
  /** It runs, and has told all that it has since. */
  readonly isInStep: boolean;
  /** Its time is over. */
  readonly isLate: boolean;
  /** Services that are being made. */
  readonly computing: AnyActorRef | undefined;
  readonly registries: AnyActorRef | undefined;
  /** What runs the one registry that there is. */
  readonly feed: AnyActorRef | undefined;
  readonly contexts: readonly MeshContext[];
  /** A context that is being made, of what the sources held when that began. */
  readonly build: { readonly call: AnyActorRef; readonly input: BuildInput; readonly contents: Contents } | undefined;
  readonly server: AnyActorRef | undefined;
  readonly orders: readonly { readonly order: ProxiesServe; readonly served: number }[];
  readonly streams: ReadonlyMap<number, StreamState>;
  readonly effects: ReadonlyMap<number, AnyActorRef>;
  readonly connections: ReadonlyMap<number, AnyActorRef>;
  readonly clients: readonly ClientState[];
  /** Streams so far. */
  readonly streamCount: number;
  /** Responses so far. */
  readonly responses: number;
  readonly wires: ReadonlyMap<number, Wire>;
  readonly owed: ReadonlyMap<number, readonly string[]>;
  readonly violations: readonly Violation[];
}

/** Nothing has begun, and nothing may change yet. */
export function firstState({ clients, types, listsLate = false }: PushWorldOptions): PushWorldState {
  return {
    changes: 0,
    faults: 0,
    changed: 0,
    contents: firstContents,
    made: listsLate ? unlistedContents : firstContents,
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

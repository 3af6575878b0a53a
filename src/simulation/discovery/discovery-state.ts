import type { AnyActorRef } from 'xstate';
import type { ProxiesServe } from '../../../machines/discovery/protocol.ts';
import type { InvariantViolation } from '../../debugger/explore/world.ts';
import type { PushWorldOptions } from './discovery-bounds.ts';
import type { BuildInput } from './discovery-charts.ts';
import { type ClientState, newClient } from './discovery-client.ts';
import type { Wire } from './discovery-invariants.ts';
import { type Contents, firstContents, type MeshContext, type MeshEvent, unlistedContents } from './discovery-mesh.ts';
import type { StreamState } from './discovery-stream.ts';

export interface PushWorldState {
  readonly changes: number;
  readonly faults: number;
  readonly changeCount: number;
  readonly contents: Contents;
  /** Registry changes are included once services have been computed. */
  readonly computedContents: Contents;
  readonly pendingChanges: readonly MeshEvent[];
  /** The registry has reported its first list. */
  readonly isListed: boolean;
  /** True if the list was sent since the last loss. */
  readonly isSynced: boolean;
  /** The wait for the registry's list has timed out. */
  readonly isLate: boolean;
  readonly computeCall: AnyActorRef | undefined;
  readonly registries: AnyActorRef | undefined;
  /** There is only one registry. */
  readonly registryActor: AnyActorRef | undefined;
  readonly contexts: readonly MeshContext[];
  /** A context that is being built, with the sources' contents at its start. */
  readonly build: { readonly call: AnyActorRef; readonly input: BuildInput; readonly contents: Contents } | undefined;
  readonly server: AnyActorRef | undefined;
  readonly orders: readonly { readonly order: ProxiesServe; readonly servedCount: number }[];
  readonly streams: ReadonlyMap<number, StreamState>;
  readonly effects: ReadonlyMap<number, AnyActorRef>;
  readonly connections: ReadonlyMap<number, AnyActorRef>;
  readonly clients: readonly ClientState[];
  readonly streamCount: number;
  readonly responses: number;
  readonly wires: ReadonlyMap<number, Wire>;
  readonly unservedKeys: ReadonlyMap<number, readonly string[]>;
  readonly violations: readonly InvariantViolation[];
}

export function firstState({ clients, types, listsLate = false }: PushWorldOptions): PushWorldState {
  return {
    changes: 0,
    faults: 0,
    changeCount: 0,
    contents: firstContents,
    computedContents: listsLate ? unlistedContents : firstContents,
    pendingChanges: [],
    isListed: !listsLate,
    isSynced: false,
    isLate: false,
    computeCall: undefined,
    registries: undefined,
    registryActor: undefined,
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
    unservedKeys: new Map(),
    violations: [],
  };
}

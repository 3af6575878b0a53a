import type { ActorRefFrom, AnyActorRef } from 'xstate';
import type { ProcessEnd, SimulatedEnvoyMeta, simulatedEnvoyMachine } from './simulated-envoy.machine.ts';

export type EnvoySignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1';

/** `files` is the version of the certificate files, `orders` the number of SIGHUPs. */
export interface Generation {
  readonly files: number;
  readonly orders: number;
}

/** The Envoy binary at the path when the agent starts; others may replace it. */
export const firstBinary = 'binary-0';

export interface SimulatedProcess {
  /** The epoch, with a `b` for the spare base ID. */
  readonly label: string;
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly binary: string;
  readonly envoy: ActorRefFrom<typeof simulatedEnvoyMachine>;
  readonly effect: AnyActorRef;
  /** True if the process has ever been live. */
  readonly isLive: boolean;
  /** The supervisor was notified that the process is live. */
  readonly isSeenLive: boolean;
  /** The supervisor was notified that the child is live. */
  readonly isChildSeenLive: boolean;
  readonly isUnkillable: boolean;
  /** The process works, but responds neither at its admin interface nor at its ports. */
  readonly isUnresponsive: boolean;
  /** The process rejected a listener on start, so it is live without it. */
  readonly lacksListener: boolean;
  /** A signal or the child ordered the process to exit. */
  readonly isHeldBack: boolean;
  /** A signal or the child ordered it. */
  readonly exitRequested: boolean;
  readonly hasClosedListeners: boolean;
  /** Its parent crashed. Whether it crashed too early cannot be determined from outside. */
  readonly parentCrashed: boolean;
  /** Since the process was orphaned, an Envoy of another base ID was prepared or started to replace it. */
  readonly successorTried: boolean;
  /** The Envoy that should replace this one crashed before a probe detected that it was live. */
  readonly successorCrashed: boolean;
}

export interface SpawnOrder {
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly binary?: string;
  readonly effect: AnyActorRef;
  /** The process will reject a listener, because Envoy cannot use its certificate. */
  readonly lacksListener?: boolean;
  /** Defaults to the host's value. */
  readonly parentShutdownMs?: number;
  /** Used for gradual drains. Default: 0. */
  readonly drainMs?: number;
}

/** Callbacks that run before events on the host take effect. */
export interface HostWatch {
  onSpawn(order: SpawnOrder): void;
  onSignal(process: SimulatedProcess, signal: EnvoySignal): void;
  onLive(process: SimulatedProcess): void;
  /** Called before the supervisor is notified. */
  onSeenLive?(process: SimulatedProcess): void;
  onExit(process: SimulatedProcess, end: ProcessEnd): void;
}

/** Only an Envoy without parent can wait for its rejected listener; a child has already replaced its parent. */
export const mayBeHeldBack = ({ lacksListener, epoch }: SimulatedProcess): boolean => lacksListener && epoch === 0;

/** Compares only the names of their sockets, by which 4 is a child of 0, too. */
export function isChildOf(child: SimulatedProcess, parent: SimulatedProcess): boolean {
  return child.epoch > 0 && child.pid > parent.pid && (child.epoch - 1) % 3 === parent.epoch % 3;
}

export function metaOf(process: SimulatedProcess): SimulatedEnvoyMeta {
  return Object.assign({}, ...Object.values(process.envoy.getSnapshot().getMeta())) as SimulatedEnvoyMeta;
}

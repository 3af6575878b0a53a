/** The state of one process of a simulated host, and the receivers of its reports. */
import type { ActorRefFrom, AnyActorRef } from 'xstate';
import type { ProcessEnd, SimulatedEnvoyMeta, simulatedEnvoyMachine } from './simulated-envoy.machine.ts';

export type EnvoySignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1';

/** The configuration with which a process was started: the version of the certificate files, and the number of SIGHUPs. */
export interface Generation {
  readonly files: number;
  readonly orders: number;
}

/** The Envoy binary at the path when the agent starts; others may replace it. */
export const firstBinary = 'binary-0';

export interface SimulatedProcess {
  /** Its name in choices: the epoch, with a `b` for the spare base ID. */
  readonly label: string;
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly binary: string;
  readonly envoy: ActorRefFrom<typeof simulatedEnvoyMachine>;
  /** The effect that is notified of its exit. */
  readonly effect: AnyActorRef;
  /** It has been live. */
  readonly isLive: boolean;
  /** Its supervisor was notified that it is live. */
  readonly isSeenLive: boolean;
  /** Its supervisor was notified that its child is live. */
  readonly isChildSeenLive: boolean;
  /** It was killed, but the kernel never ends it. */
  readonly isUnkillable: boolean;
  /** It works, but does not respond for a while, neither at its admin interface nor at its ports. */
  readonly isUnresponsive: boolean;
  /** It rejected a listener on start, so it is live without it. */
  readonly lacksListener: boolean;
  /** Its epoch was notified of the missing listener, and does not count it as live yet. */
  readonly isHeldBack: boolean;
  /** It was ordered to exit: by a signal, or by its child. */
  readonly exitRequested: boolean;
  /** It was ordered to close its listeners. */
  readonly hasClosedListeners: boolean;
  /** Its parent crashed. Whether it crashed too early cannot be determined from outside. */
  readonly parentCrashed: boolean;
  /** Since it was orphaned, an Envoy of another base ID was prepared or started to replace it. */
  readonly successorTried: boolean;
  /** An Envoy of another base ID was started to replace it, and crashed before it was detected as live. */
  readonly successorCrashed: boolean;
}

export interface SpawnOrder {
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly binary?: string;
  readonly effect: AnyActorRef;
  /** It will reject a listener, because Envoy cannot use its certificate. */
  readonly lacksListener?: boolean;
  /** Defaults to the host's value. */
  readonly parentShutdownMs?: number;
  /** For gradual drains. Default: 0. */
  readonly drainMs?: number;
}

/** Callbacks that run before events on the host take effect. */
export interface HostWatch {
  onSpawn(order: SpawnOrder): void;
  onSignal(process: SimulatedProcess, signal: EnvoySignal): void;
  onLive(process: SimulatedProcess): void;
  /** Its supervisor is about to be notified that it is live. */
  onSeenLive?(process: SimulatedProcess): void;
  onExit(process: SimulatedProcess, end: ProcessEnd): void;
}

/** Only an Envoy without parent can wait for its rejected listener; a child has already replaced its parent. */
export const mayBeHeldBack = ({ lacksListener, epoch }: SimulatedProcess): boolean => lacksListener && epoch === 0;

/** By the names of their sockets: 4 is a child of 0, too. */
export function isChildOf(child: SimulatedProcess, parent: SimulatedProcess): boolean {
  return child.epoch > 0 && child.pid > parent.pid && (child.epoch - 1) % 3 === parent.epoch % 3;
}

/** The spontaneous events that its state allows. */
export function metaOf(process: SimulatedProcess): SimulatedEnvoyMeta {
  return Object.assign({}, ...Object.values(process.envoy.getSnapshot().getMeta())) as SimulatedEnvoyMeta;
}

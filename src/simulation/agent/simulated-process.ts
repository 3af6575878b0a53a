/** One process of a simulated host, as it is at one moment, and who is told of it. */
import type { ActorRefFrom, AnyActorRef } from 'xstate';
import type { ProcessEnd, SimulatedEnvoyMeta, simulatedEnvoyMachine } from './simulated-envoy.machine.ts';

export type EnvoySignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1';

/** What a process was started for: which certificate files were there, and how many SIGHUPs had come. */
export interface Generation {
  readonly files: number;
  readonly orders: number;
}

/** The Envoy that an agent begins with: the first of those that lie at the path of its binary, one after the other. */
export const firstBinary = 'binary-0';

export interface SimulatedProcess {
  /** Its name in choices: the epoch; with a `b` under the second base id. */
  readonly label: string;
  readonly pid: number;
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  /** Which Envoy it is. */
  readonly binary: string;
  readonly envoy: ActorRefFrom<typeof simulatedEnvoyMachine>;
  /** The effect that is told of its exit. */
  readonly effect: AnyActorRef;
  /** Has been live. */
  readonly live: boolean;
  /** And its supervisor was told. */
  readonly seen: boolean;
  /** Its supervisor was told that its child is live. */
  readonly supersededSeen: boolean;
  /** Was killed, and the kernel does not let it go: it never ends. */
  readonly undying: boolean;
  /** Works on, and answers nobody for a while: neither at its admin interface nor at its ports. */
  readonly sick: boolean;
  /** It refused a listener at its start: it is live without it. */
  readonly lacks: boolean;
  /** And its epoch was told so: it is not called live yet. */
  readonly heldBack: boolean;
  /** Was told to end: by a signal, or by its child. */
  readonly sentAway: boolean;
  /** Was told to close its listeners. */
  readonly closed: boolean;
  /** Its parent ended in disorder: whether before its time or after, nobody outside can be sure. */
  readonly parentCrashed: boolean;
  /** Since it was doomed, an Envoy of another base id was prepared or started: to take its place. */
  readonly successorTried: boolean;
  /** An Envoy of another base id was started beside it, and died on its own before it was seen to be live. */
  readonly successorDied: boolean;
}

/** What is to be started. */
export interface SpawnOrder {
  readonly epoch: number;
  readonly baseId: number;
  readonly generation: Generation;
  readonly binary?: string;
  readonly effect: AnyActorRef;
  /** It will refuse a listener: its certificate is none that Envoy can use. */
  readonly lacks?: boolean;
  /** Where it is not the host's. */
  readonly parentShutdownMs?: number;
  /** For those that are told to drain gradually; in no time otherwise. */
  readonly drainMs?: number;
}

/** Who is told what happens on the host. Asked before it takes effect. */
export interface HostWatch {
  spawning(newcomer: SpawnOrder): void;
  signalling(process: SimulatedProcess, signal: EnvoySignal): void;
  wentLive(process: SimulatedProcess): void;
  /** Its supervisor is about to be told that it is live. */
  seen?(process: SimulatedProcess): void;
  left(process: SimulatedProcess, end: ProcessEnd): void;
}

/** Nobody has made room for it: its epoch may wait for the listener that it refused. Who has a parent has taken its place. */
export const mayBeHeldBack = ({ lacks, epoch }: SimulatedProcess): boolean => lacks && epoch === 0;

/** By the names of their sockets: 4 is a child of 0, too (§2 "Gap +4"). */
export function isChildOf(child: SimulatedProcess, parent: SimulatedProcess): boolean {
  return child.epoch > 0 && child.pid > parent.pid && (child.epoch - 1) % 3 === parent.epoch % 3;
}

/** What its state says of what may happen to it by nature. */
export function metaOf(process: SimulatedProcess): SimulatedEnvoyMeta {
  return Object.assign({}, ...Object.values(process.envoy.getSnapshot().getMeta())) as SimulatedEnvoyMeta;
}

/** What an exploration keeps beside the actors, the host and the time: what was asked of the agent, and who waits for an answer. */
import type { AnyActorRef } from 'xstate';
import type { PersistedState } from '../../../machines/agent/envoy/adoption.ts';
import type { EpochContext } from '../../../machines/agent/envoy/epoch-context.ts';
import type { Violation } from '../../debugger/explore/world.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import type { Bounds } from './exploration-bounds.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import { keyOfProcess } from './simulated-host.ts';
import { firstBinary, type Generation, type SimulatedProcess } from './simulated-process.ts';

/** Immutable: every change makes a new one. */
export interface WorldState {
  /** What is left of the bounds. */
  readonly triggers: number;
  readonly faults: number;
  readonly stops: number;
  /** Number of the contents of the certificate files, and whether Envoy can use what is there. */
  readonly files: number;
  readonly spoiled: boolean;
  /** The contents as the agent last read them and could use them. */
  readonly filesRead: number;
  /** What the agent should run by now. */
  readonly wanted: { readonly files: number; readonly orders: number };
  /** Starts that have failed, and live epochs lost, since the last trigger or the last minute of health. */
  readonly failures: number;
  /** What no Envoy ever becomes live with. */
  readonly unfit: Generation | undefined;
  /** Contents of the files that no Envoy can use, though they were found good: it is live without its listener. */
  readonly refused: number | undefined;
  /** Told to end once more when it waited for the last processes already. */
  readonly hurried: boolean;
  readonly stop: 'not ordered' | 'ordered' | 'deadline passed';
  /** The start that the supervisor has told of as decided, and not yet as over. */
  readonly restart: string | undefined;
  /** Calls of `prepare` that are not answered, by epoch: `0`, `0b`. */
  readonly preparing: ReadonlyMap<string, AnyActorRef>;
  /** Those of them that never will be. */
  readonly unprepared: ReadonlySet<string>;
  readonly probes: ReadonlyMap<string, AnyActorRef>;
  /** Those of them that were told to look now. */
  readonly looking: ReadonlyMap<string, { readonly probe: AnyActorRef; readonly asItIs: boolean }>;
  readonly repairing: { readonly call: AnyActorRef; readonly baseId: number } | undefined;
  readonly releasing: AnyActorRef | undefined;
  readonly signals: AnyActorRef | undefined;
  /** Newer agents are listened for. */
  readonly link: AnyActorRef | undefined;
  readonly watch: AnyActorRef | undefined;
  /** It hears nothing: it is yet to be set up, and never will be. */
  readonly hung: boolean;
  /** There is no directory at the watched path. */
  readonly away: boolean;
  /** Which Envoy lies at the path of the binary, and whether it fits. */
  readonly binary: number;
  readonly misfit: boolean;
  /** Those that were looked at and found to fit. */
  readonly checked: ReadonlySet<string>;
  /** Those that died by themselves before they had proven themselves, or were taken back. */
  readonly failedBinaries: ReadonlySet<string>;
  /** Those of which the supervisor has told that it takes them back. */
  readonly withdrawn: ReadonlySet<string>;
  /** Those that have served for a minute; the first one has always. */
  readonly proven: ReadonlySet<string>;
  /** Some Envoy has been live. */
  readonly everLive: boolean;
  /** Of the directory of the binary. */
  readonly binaryWatch: AnyActorRef | undefined;
  /** Files that the first start needs are waited for. */
  readonly waiting: AnyActorRef | undefined;
  /** A reading of the certificate files that will be answered. */
  readonly reading: AnyActorRef | undefined;
  readonly http: AnyActorRef | undefined;
  /** The base id whose admin port is asked. */
  readonly adminOf: number | undefined;
  /** The next start fails: the operating system has no process to give. */
  readonly unspawnable: boolean;
  /** Processes that there are, and whose epochs have not heard of them yet: the effects that will tell it. */
  readonly spawning: ReadonlyMap<string, AnyActorRef>;
  readonly violations: readonly Violation[];
  /** The agent was killed, or has given way, and the next one is not there yet. */
  readonly gone: Gone | undefined;
}

/** What an agent that was killed has left, beside its Envoys. */
export interface Gone {
  readonly knowledge: PersistedState;
  /** Of parents that leave: what their charts went by. */
  readonly leaving: ReadonlyMap<string, Pick<EpochContext, 'parentShutdownMs' | 'unseenMs'>>;
  /** Its timers: they say for how long what it began has been going on. */
  readonly timers: readonly string[];
  /** The start that it had told of as decided, should it decide on after all. */
  readonly restart: string | undefined;
  /** Those that have ended, which nobody saw, by their names. */
  readonly ends: ReadonlyMap<string, Left>;
}

export interface Left {
  readonly process: SimulatedProcess;
  readonly end: ProcessEnd & { readonly tookOverWithinMs?: number };
}

export function firstState({ triggers, faults, stops }: Bounds): WorldState {
  return {
    triggers,
    faults,
    stops,
    files: 0,
    spoiled: false,
    filesRead: 0,
    wanted: { files: 0, orders: 0 },
    failures: 0,
    unfit: undefined,
    refused: undefined,
    hurried: false,
    stop: 'not ordered',
    restart: undefined,
    preparing: new Map(),
    unprepared: new Set(),
    probes: new Map(),
    looking: new Map(),
    repairing: undefined,
    releasing: undefined,
    signals: undefined,
    link: undefined,
    watch: undefined,
    hung: false,
    away: false,
    waiting: undefined,
    reading: undefined,
    http: undefined,
    binary: 0,
    misfit: false,
    checked: new Set([firstBinary]),
    failedBinaries: new Set(),
    withdrawn: new Set(),
    proven: new Set([firstBinary]),
    everLive: false,
    binaryWatch: undefined,
    adminOf: undefined,
    unspawnable: false,
    spawning: new Map(),
    violations: [],
    gone: undefined,
  };
}

/** The contents that an Envoy is started with now. */
export function filesThatAreRead({ files, filesRead, spoiled }: WorldState): number {
  return spoiled ? filesRead : files;
}

/**
 * Identity of what is kept here. `mostFailures`: more are as good as these. Once a stop was ordered there is no way back: what
 * the agent should run, and how often it has failed, is of no consequence any more.
 */
export function keyOfState(s: WorldState, mostFailures: number): string {
  const calls = `${s.adminOf} ${[...s.preparing.keys()].map((name) => (s.unprepared.has(name) ? `${name}!` : name))}/${[...s.probes.keys()]}/${[...s.looking].map(([name, { asItIs }]) => `${name}${asItIs ? '!' : ''}`)}/${[...s.spawning.keys()].map((name) => `+${name}`)}/${s.repairing?.baseId}/${s.releasing !== undefined}${s.waiting === undefined ? '' : '/files'}${s.reading === undefined ? '' : '/reading'}`;
  if (s.stop !== 'not ordered')
    return `${keyOfGone(s.gone, true)}${s.link !== undefined && s.triggers > 0 ? '+' : ''}${s.faults} ${s.stops} ${s.hurried ? '!' : ''}${s.stop}|${s.restart ?? ''}|${calls}`;
  const files = `f${s.files};${s.spoiled ? '!' : ''}f${s.filesRead};f${s.wanted.files};`;
  const failures = Math.min(s.failures, mostFailures);
  const unfit = s.unfit === undefined ? '' : `never f${s.unfit.files};o${s.unfit.orders};`;
  // What nobody will be started with any more is of no consequence.
  const watch = `${s.hung ? 'hung' : ''}${s.away ? 'away' : ''}`;
  const isThere = s.refused !== undefined && s.refused === filesThatAreRead(s);
  const refused = isThere ? `lacking f${s.refused};` : '';
  const binary =
    s.binary === 0
      ? ''
      : `binary ${s.binary}${s.misfit ? '!' : ''}${s.everLive ? 'L' : ''} ${[...s.failedBinaries].sort()} ${[...s.withdrawn].sort()} ${[...s.proven].sort()};`;
  return `${keyOfGone(s.gone, false)}${s.triggers} ${s.faults} ${s.stops}|${binary}${files}${watch}o${s.wanted.orders};${unfit}${refused} ${failures}|${s.restart ?? ''}|${calls}`;
}

function keyOfGone(gone: Gone | undefined, stopOrdered: boolean): string {
  if (gone === undefined) return '';
  const left = stopOrdered ? historyAfterStop : history;
  const knowledge = JSON.stringify(gone.knowledge, (name, value: unknown) => (left.has(name) ? undefined : value));
  const ends = [...gone.ends].map(
    ([name, { process, end }]) => `${name}=${end.code}${keyOfProcess(process, stopOrdered)}`,
  );
  return `gone ${generations(knowledge)} ${ends.sort()} `;
}

/** What is constant, or says only how things came to be. */
const settled = [
  'settings',
  'baseIds',
  'adminPort',
  'pid',
  'parentShutdownMs',
  'parentGraceMs',
  'healthyMs',
  'drainMs',
  'validate',
  // What came of it is a timer.
  'unseenMs',
];
const watched = [
  'directories',
  'directory',
  'delayMs',
  'requiredFiles',
  'requiredFilesLimitMs',
  'port',
  'burst',
  'refillMs',
  'path',
  'first',
  'watched',
  'settleMs',
];
const limits = [
  'startLimitMs',
  'outdatedLimitMs',
  'terminationDrainMs',
  'minimumDrainMs',
  'stopLimitMs',
  'waitsForRequests',
];
const reported = ['attempts', 'attempt', 'trouble', 'reason', 'how', 'configFile'];
/** And what decides on starts only: there are none after an order to stop. */
const deciding = ['desired', 'failures', 'recovery', 'provenDigest', 'provenBinary', 'digest', 'orders', 'miscounts'];
const history = new Set([...settled, ...watched, ...limits, ...reported]);
const historyAfterStop = new Set([...history, ...deciding]);
const keys = new WeakMap<object, string>();
const keysAfterStop = new WeakMap<object, string>();

/** Identity of a machine's actor; effects have no state of their own. */
export function keyOfActor(actor: AnyActorRef, stopOrdered: boolean): string {
  const snapshot = actor.getSnapshot() as { status: string; value?: never; context?: object };
  if (snapshot.value === undefined) return '';
  const cache = stopOrdered ? keysAfterStop : keys;
  const known = cache.get(snapshot);
  if (known !== undefined) return known;
  const state = stateName(snapshot.value);
  const left = stopOrdered ? historyAfterStop : history;
  const ofItsStart = actor.id === 'agent' ? agentsStart : actor.id.startsWith('epoch-') ? epochsStart : {};
  const context = JSON.stringify(snapshot.context, function (this: unknown, name, value: unknown) {
    const isOver = this === snapshot.context && ofItsStart[name]?.(state) === false;
    return isOver || left.has(name) ? undefined : value;
  });
  const key = `${actor.id} ${snapshot.status} ${state} ${generations(context)}\n`;
  cache.set(snapshot, key);
  return key;
}

/** What an actor knows that is only of consequence in these states: an effect or another chart begins with it, and nobody asks afterwards. */
type OfItsStart = Readonly<Record<string, ((state: string) => boolean) | undefined>>;

const isSpawning = (state: string): boolean => state === 'running.starting';
const isBeforeItsProcess = (state: string): boolean => state === 'preparing' || isSpawning(state);

const epochsStart: OfItsStart = {
  /** That it was told to look before its process was reported: its probe begins after that, and looks at once. */
  asked: isSpawning,
  /** What it is prepared with and followed by. */
  adopted: isBeforeItsProcess,
  /** What its probe is told, and tells. */
  startedAtMs: (state) => isBeforeItsProcess(state) || state.startsWith('running.initializing'),
};

const agentsStart: OfItsStart = {
  /** What its supervisor begins with. The next one begins with what is claimed, or taken back, by then. */
  adoption: (state) => state.startsWith('active.preparing') && !state.endsWith('standing by'),
};

/** `f1;` for contents of files and `o1;` for ordered restarts: see {@link byRank}. */
function generations(context: string): string {
  return context.replace(/"files-(\d+)"/g, 'f$1;').replace(/"orders":(\d+)/g, 'o$1;');
}

/**
 * Of contents of files and of ordered restarts only matters which are the same and which are newer: the oldest that is still
 * spoken of is called 0, the next one 1, …
 */
export function byRank(key: string): string {
  const seen = { f: 0, o: 0 };
  for (const [, kind, number] of key.matchAll(generation)) seen[kind as 'f' | 'o'] |= 1 << Number(number);
  return key.replace(
    generation,
    (_, kind: 'f' | 'o', number: string) => `${kind}${countBelow(seen[kind], Number(number))};`,
  );
}

const generation = /([fo])(\d+);/g;

function countBelow(set: number, number: number): number {
  let count = 0;
  for (let below = set & ((1 << number) - 1); below !== 0; below &= below - 1) count++;
  return count;
}

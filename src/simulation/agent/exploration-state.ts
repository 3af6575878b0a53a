/** The state of an exploration without actors, host and time: orders to the agent, and pending calls. */
import type { AnyActorRef } from 'xstate';
import type { PersistedState } from '../../../machines/agent/envoy/adoption.ts';
import type { EpochContext } from '../../../machines/agent/envoy/epoch-context.ts';
import type { InvariantViolation } from '../../debugger/explore/world.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import type { Bounds } from './exploration-bounds.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import { keyOfProcess } from './simulated-host.ts';
import { firstBinary, type Generation, type SimulatedProcess } from './simulated-process.ts';

/** Immutable: every change creates a new object. */
export interface WorldState {
  /** Remaining bounds. */
  readonly triggers: number;
  readonly faults: number;
  readonly stops: number;
  /** Version of the certificate files' contents, and whether Envoy cannot use the current contents. */
  readonly files: number;
  readonly spoiled: boolean;
  /** The last usable contents that the agent has read. */
  readonly filesRead: number;
  readonly desired: { readonly files: number; readonly orders: number };
  /** Failed starts and lost live epochs since the last trigger or the last minute of health. */
  readonly failures: number;
  /** The generation with which no Envoy ever becomes live. */
  readonly unfit: Generation | undefined;
  /** Contents that Envoy rejects although their check passed: it is live without its listener. */
  readonly refused: number | undefined;
  /** Another stop was ordered while the agent waited for the last processes. */
  readonly hurried: boolean;
  readonly stop: 'not ordered' | 'ordered' | 'deadline passed';
  readonly restart: string | undefined;
  /** Pending calls of `prepare`, by epoch: `0`, `0b`. */
  readonly preparing: ReadonlyMap<string, AnyActorRef>;
  /** Calls of `prepare` that never return. */
  readonly unprepared: ReadonlySet<string>;
  readonly probes: ReadonlyMap<string, AnyActorRef>;
  /** Probes with a pending order for an immediate check. */
  readonly pendingProbes: ReadonlyMap<
    string,
    { readonly probe: AnyActorRef; readonly acceptsMissingListeners: boolean }
  >;
  readonly repairing: { readonly call: AnyActorRef; readonly baseId: number } | undefined;
  readonly releasing: AnyActorRef | undefined;
  readonly signals: AnyActorRef | undefined;
  /** The link that newer agents connect to. */
  readonly link: AnyActorRef | undefined;
  readonly watch: AnyActorRef | undefined;
  /** The watch is never set up, so it reports nothing. */
  readonly hung: boolean;
  /** There is no directory at the watched path. */
  readonly away: boolean;
  /** Version of the Envoy binary at the path, and whether it is incompatible. */
  readonly binary: number;
  readonly misfit: boolean;
  readonly checked: ReadonlySet<string>;
  readonly failedBinaries: ReadonlySet<string>;
  /** Binaries that the supervisor has reported as withdrawn. */
  readonly withdrawn: ReadonlySet<string>;
  /** Binaries that have served for a minute; always includes the first one. */
  readonly proven: ReadonlySet<string>;
  readonly everLive: boolean;
  readonly binaryWatch: AnyActorRef | undefined;
  /** The pending wait for files that the first start requires. */
  readonly waiting: AnyActorRef | undefined;
  /** A read of the certificate files that will finish. */
  readonly reading: AnyActorRef | undefined;
  readonly http: AnyActorRef | undefined;
  /** The base ID whose admin port is queried. */
  readonly adminOf: number | undefined;
  /** The next start fails: the operating system cannot create a process. */
  readonly unspawnable: boolean;
  /** Effects that have not reported their new process to its epoch yet. */
  readonly spawning: ReadonlyMap<string, AnyActorRef>;
  readonly violations: readonly InvariantViolation[];
  /** The agent was killed or replaced, and the next one has not started yet. */
  readonly stoppedAgent: StoppedAgent | undefined;
}

/** State that an agent leaves behind, apart from its Envoys. */
export interface StoppedAgent {
  readonly knowledge: PersistedState;
  /** Deadlines of exiting parents, from the contexts of their charts. */
  readonly leaving: ReadonlyMap<string, Pick<EpochContext, 'parentShutdownMs' | 'unseenMs'>>;
  /** The agent's timers, which measure the duration of its operations. */
  readonly timers: readonly string[];
  /** The start that the agent had reported as decided; used if it resumes. */
  readonly restart: string | undefined;
  /** Exits that no agent observed, by the names of the processes. */
  readonly ends: ReadonlyMap<string, ExitedProcess>;
}

export interface ExitedProcess {
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
    desired: { files: 0, orders: 0 },
    failures: 0,
    unfit: undefined,
    refused: undefined,
    hurried: false,
    stop: 'not ordered',
    restart: undefined,
    preparing: new Map(),
    unprepared: new Set(),
    probes: new Map(),
    pendingProbes: new Map(),
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
    stoppedAgent: undefined,
  };
}

/** Returns the contents with which an Envoy would be started now. */
export function filesThatAreRead({ files, filesRead, spoiled }: WorldState): number {
  return spoiled ? filesRead : files;
}

/**
 * Key of this state. Failures beyond `maxFailures` are not distinguished. After an order to stop, which is final, the key omits the desired
 * generation and the number of failures.
 */
export function keyOfState(s: WorldState, maxFailures: number): string {
  const calls = `${s.adminOf} ${[...s.preparing.keys()].map((name) => (s.unprepared.has(name) ? `${name}!` : name))}/${[...s.probes.keys()]}/${[...s.pendingProbes].map(([name, { acceptsMissingListeners }]) => `${name}${acceptsMissingListeners ? '!' : ''}`)}/${[...s.spawning.keys()].map((name) => `+${name}`)}/${s.repairing?.baseId}/${s.releasing !== undefined}${s.waiting === undefined ? '' : '/files'}${s.reading === undefined ? '' : '/reading'}`;
  if (s.stop !== 'not ordered')
    return `${keyOfStoppedAgent(s.stoppedAgent, true)}${s.link !== undefined && s.triggers > 0 ? '+' : ''}${s.faults} ${s.stops} ${s.hurried ? '!' : ''}${s.stop}|${s.restart ?? ''}|${calls}`;
  const files = `f${s.files};${s.spoiled ? '!' : ''}f${s.filesRead};f${s.desired.files};`;
  const failures = Math.min(s.failures, maxFailures);
  const unfit = s.unfit === undefined ? '' : `never f${s.unfit.files};o${s.unfit.orders};`;
  // `refused` omits rejected contents with which no Envoy starts.
  const watch = `${s.hung ? 'hung' : ''}${s.away ? 'away' : ''}`;
  const isThere = s.refused !== undefined && s.refused === filesThatAreRead(s);
  const refusedText = isThere ? `lacking f${s.refused};` : '';
  const binary =
    s.binary === 0
      ? ''
      : `binary ${s.binary}${s.misfit ? '!' : ''}${s.everLive ? 'L' : ''} ${[...s.failedBinaries].sort()} ${[...s.withdrawn].sort()} ${[...s.proven].sort()};`;
  return `${keyOfStoppedAgent(s.stoppedAgent, false)}${s.triggers} ${s.faults} ${s.stops}|${binary}${files}${watch}o${s.desired.orders};${unfit}${refusedText} ${failures}|${s.restart ?? ''}|${calls}`;
}

function keyOfStoppedAgent(agent: StoppedAgent | undefined, stopOrdered: boolean): string {
  if (agent === undefined) return '';
  const omittedFields = stopOrdered ? historyAfterStop : history;
  const knowledge = JSON.stringify(agent.knowledge, (name, value: unknown) =>
    omittedFields.has(name) ? undefined : value,
  );
  const endTexts = [...agent.ends].map(
    ([name, { process, end }]) => `${name}=${end.code}${keyOfProcess(process, stopOrdered)}`,
  );
  return `gone ${generations(knowledge)} ${endTexts.sort()} `;
}

/** Fields that are constant, or record only how the state was reached. */
const settledFields = [
  'settings',
  'baseIds',
  'adminPort',
  'pid',
  'parentShutdownMs',
  'parentGraceMs',
  'healthyMs',
  'drainMs',
  'validate',
  // The resulting timer is part of the key.
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
const reportedFields = ['attempts', 'attempt', 'trouble', 'reason', 'how', 'configFile'];
/** Fields that only affect starts; nothing starts after an order to stop. */
const deciding = ['desired', 'failures', 'recovery', 'provenDigest', 'provenBinary', 'digest', 'orders', 'miscounts'];
const history = new Set([...settledFields, ...watched, ...limits, ...reportedFields]);
const historyAfterStop = new Set([...history, ...deciding]);
const keys = new WeakMap<object, string>();
const keysAfterStop = new WeakMap<object, string>();

/** Key of a machine's actor; effects have no state. */
export function keyOfActor(actor: AnyActorRef, stopOrdered: boolean): string {
  const snapshot = actor.getSnapshot() as { status: string; value?: never; context?: object };
  if (snapshot.value === undefined) return '';
  const cache = stopOrdered ? keysAfterStop : keys;
  const cachedKey = cache.get(snapshot);
  if (cachedKey !== undefined) return cachedKey;
  const state = stateName(snapshot.value);
  const omittedFields = stopOrdered ? historyAfterStop : history;
  const startFields = actor.id === 'agent' ? agentsStart : actor.id.startsWith('epoch-') ? epochsStart : {};
  const context = JSON.stringify(snapshot.context, function (this: unknown, name, value: unknown) {
    const isOver = this === snapshot.context && startFields[name]?.(state) === false;
    return isOver || omittedFields.has(name) ? undefined : value;
  });
  const key = `${actor.id} ${snapshot.status} ${state} ${generations(context)}\n`;
  cache.set(snapshot, key);
  return key;
}

/** Fields that matter only in these states: they are input of an effect or another chart, and are not read afterwards. */
type OfItsStart = Readonly<Record<string, ((state: string) => boolean) | undefined>>;

const isSpawning = (state: string): boolean => state === 'running.starting';
const isBeforeItsProcess = (state: string): boolean => state === 'preparing' || isSpawning(state);

const epochsStart: OfItsStart = {
  /** A check was requested before the process was reported: the probe starts later and checks immediately. */
  isProbeRequested: isSpawning,
  /** Input of its preparation and its process effect. */
  adopted: isBeforeItsProcess,
  /** Input of its probe. */
  startedAtMs: (state) => isBeforeItsProcess(state) || state.startsWith('running.initializing'),
};

const agentsStart: OfItsStart = {
  /** Input of its supervisor. The next supervisor receives the Envoys that are claimed or taken back then. */
  adoption: (state) => state.startsWith('active.preparing') && !state.endsWith('standing by'),
};

/** Marks contents of files as `f1;` and ordered restarts as `o1;`, see {@link renumberGenerations}. */
function generations(context: string): string {
  return context.replace(/"files-(\d+)"/g, 'f$1;').replace(/"orders":(\d+)/g, 'o$1;');
}

/**
 * Renumbers contents of files and ordered restarts, of which only equality and order matter: the oldest referenced one becomes 0, the next
 * one 1, …
 */
export function renumberGenerations(key: string): string {
  const seenNumbers = { f: 0, o: 0 };
  for (const [, kind, number] of key.matchAll(generation)) seenNumbers[kind as 'f' | 'o'] |= 1 << Number(number);
  return key.replace(
    generation,
    (_, kind: 'f' | 'o', number: string) => `${kind}${countBelow(seenNumbers[kind], Number(number))};`,
  );
}

const generation = /([fo])(\d+);/g;

function countBelow(set: number, number: number): number {
  let count = 0;
  for (let lowerBits = set & ((1 << number) - 1); lowerBits !== 0; lowerBits &= lowerBits - 1) count++;
  return count;
}

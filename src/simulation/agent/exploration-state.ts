import type { AnyActorRef } from 'xstate';
import type { PersistedState } from '../../../machines/agent/envoy/adoption.ts';
import type { EpochContext } from '../../../machines/agent/envoy/epoch-context.ts';
import type { InvariantViolation } from '../../debugger/explore/world.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import type { Bounds } from './exploration-bounds.ts';
import type { ProcessEnd } from './simulated-envoy.machine.ts';
import { keyOfProcess } from './simulated-host.ts';
import { firstBinary, type Generation, type SimulatedProcess } from './simulated-process.ts';

export interface WorldState {
  readonly triggers: number;
  readonly faults: number;
  readonly stops: number;
  /** Version of the certificate files' contents. */
  readonly files: number;
  readonly isSpoiled: boolean;
  /** The last usable contents that the agent has read. */
  readonly filesRead: number;
  readonly desired: { readonly files: number; readonly orders: number };
  /** Failed starts and lost live epochs since the last trigger or the last minute of health. */
  readonly failures: number;
  /** The generation with which no Envoy ever becomes live. */
  readonly unusableGeneration: Generation | undefined;
  /** The check of these contents passed, but Envoy rejects them: it is live without its listener. */
  readonly refusedFiles: number | undefined;
  /** Another stop was ordered while the agent waited for the last processes. */
  readonly isHurried: boolean;
  readonly stop: 'not ordered' | 'ordered' | 'deadline passed';
  readonly restart: string | undefined;
  readonly prepareCalls: ReadonlyMap<string, AnyActorRef>;
  /** Names of the calls in `prepareCalls` that never return. */
  readonly hungPrepares: ReadonlySet<string>;
  readonly probes: ReadonlyMap<string, AnyActorRef>;
  /** Probes that were ordered to check immediately. */
  readonly pendingProbes: ReadonlyMap<
    string,
    { readonly probe: AnyActorRef; readonly acceptsMissingListeners: boolean }
  >;
  readonly pendingRepair: { readonly call: AnyActorRef; readonly baseId: number } | undefined;
  readonly releaseCall: AnyActorRef | undefined;
  readonly signals: AnyActorRef | undefined;
  readonly link: AnyActorRef | undefined;
  readonly watch: AnyActorRef | undefined;
  /** The watch is never set up, so it reports nothing. */
  readonly isWatchHung: boolean;
  readonly isDirectoryAway: boolean;
  /** Version of the Envoy binary at the path. */
  readonly binary: number;
  readonly isBinaryIncompatible: boolean;
  readonly checkedBinaries: ReadonlySet<string>;
  readonly failedBinaries: ReadonlySet<string>;
  readonly withdrawnBinaries: ReadonlySet<string>;
  /** These binaries have served for a minute. The first one is always included. */
  readonly provenBinaries: ReadonlySet<string>;
  readonly wasEverLive: boolean;
  readonly binaryWatch: AnyActorRef | undefined;
  readonly fileWait: AnyActorRef | undefined;
  /** A pending read that will finish. */
  readonly fileRead: AnyActorRef | undefined;
  readonly http: AnyActorRef | undefined;
  readonly adminOf: number | undefined;
  readonly failsNextSpawn: boolean;
  /** Processes that their epochs do not know yet. */
  readonly pendingSpawns: ReadonlyMap<string, AnyActorRef>;
  readonly violations: readonly InvariantViolation[];
  /** Set until the next agent starts. */
  readonly stoppedAgent: StoppedAgent | undefined;
}

/** State that an agent leaves behind, apart from its Envoys. */
export interface StoppedAgent {
  readonly persistedState: PersistedState;
  /** Deadlines of exiting parents, from the contexts of their charts. */
  readonly exitingParents: ReadonlyMap<string, Pick<EpochContext, 'parentShutdownMs' | 'unseenMs'>>;
  /** Names of the agent's timers, which measure the duration of its operations. */
  readonly timers: readonly string[];
  /** The decided start, which is used if the agent resumes. */
  readonly restart: string | undefined;
  /** No agent observed these exits. */
  readonly exitedProcesses: ReadonlyMap<string, ExitedProcess>;
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
    isSpoiled: false,
    filesRead: 0,
    desired: { files: 0, orders: 0 },
    failures: 0,
    unusableGeneration: undefined,
    refusedFiles: undefined,
    isHurried: false,
    stop: 'not ordered',
    restart: undefined,
    prepareCalls: new Map(),
    hungPrepares: new Set(),
    probes: new Map(),
    pendingProbes: new Map(),
    pendingRepair: undefined,
    releaseCall: undefined,
    signals: undefined,
    link: undefined,
    watch: undefined,
    isWatchHung: false,
    isDirectoryAway: false,
    fileWait: undefined,
    fileRead: undefined,
    http: undefined,
    binary: 0,
    isBinaryIncompatible: false,
    checkedBinaries: new Set([firstBinary]),
    failedBinaries: new Set(),
    withdrawnBinaries: new Set(),
    provenBinaries: new Set([firstBinary]),
    wasEverLive: false,
    binaryWatch: undefined,
    adminOf: undefined,
    failsNextSpawn: false,
    pendingSpawns: new Map(),
    violations: [],
    stoppedAgent: undefined,
  };
}

export function filesThatAreRead({ files, filesRead, isSpoiled }: WorldState): number {
  return isSpoiled ? filesRead : files;
}

/**
 * Failures beyond `maxFailures` are not distinguished. An order to stop is final, so the key then omits the desired generation and the number of
 * failures.
 */
export function keyOfState(s: WorldState, maxFailures: number): string {
  const calls = `${s.adminOf} ${[...s.prepareCalls.keys()].map((name) => (s.hungPrepares.has(name) ? `${name}!` : name))}/${[...s.probes.keys()]}/${[...s.pendingProbes].map(([name, { acceptsMissingListeners }]) => `${name}${acceptsMissingListeners ? '!' : ''}`)}/${[...s.pendingSpawns.keys()].map((name) => `+${name}`)}/${s.pendingRepair?.baseId}/${s.releaseCall !== undefined}${s.fileWait === undefined ? '' : '/files'}${s.fileRead === undefined ? '' : '/reading'}`;
  if (s.stop !== 'not ordered')
    return `${keyOfStoppedAgent(s.stoppedAgent, true)}${s.link !== undefined && s.triggers > 0 ? '+' : ''}${s.faults} ${s.stops} ${s.isHurried ? '!' : ''}${s.stop}|${s.restart ?? ''}|${calls}`;
  const files = `f${s.files};${s.isSpoiled ? '!' : ''}f${s.filesRead};f${s.desired.files};`;
  const failures = Math.min(s.failures, maxFailures);
  const unfit =
    s.unusableGeneration === undefined ? '' : `never f${s.unusableGeneration.files};o${s.unusableGeneration.orders};`;
  // `refusedText` omits rejected contents with which no Envoy starts.
  const watch = `${s.isWatchHung ? 'hung' : ''}${s.isDirectoryAway ? 'away' : ''}`;
  const isThere = s.refusedFiles !== undefined && s.refusedFiles === filesThatAreRead(s);
  const refusedText = isThere ? `lacking f${s.refusedFiles};` : '';
  const binary =
    s.binary === 0
      ? ''
      : `binary ${s.binary}${s.isBinaryIncompatible ? '!' : ''}${s.wasEverLive ? 'L' : ''} ${[...s.failedBinaries].sort()} ${[...s.withdrawnBinaries].sort()} ${[...s.provenBinaries].sort()};`;
  return `${keyOfStoppedAgent(s.stoppedAgent, false)}${s.triggers} ${s.faults} ${s.stops}|${binary}${files}${watch}o${s.desired.orders};${unfit}${refusedText} ${failures}|${s.restart ?? ''}|${calls}`;
}

function keyOfStoppedAgent(agent: StoppedAgent | undefined, stopOrdered: boolean): string {
  if (agent === undefined) return '';
  const omittedFields = stopOrdered ? historyAfterStop : history;
  const knowledge = JSON.stringify(agent.persistedState, (name, value: unknown) =>
    omittedFields.has(name) ? undefined : value,
  );
  const endTexts = [...agent.exitedProcesses].map(
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
const fileFields = [
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
/** Omitted from the key after an order to stop, because nothing starts then. */
const decisionFields = [
  'desired',
  'failures',
  'recovery',
  'provenDigest',
  'provenBinary',
  'digest',
  'orders',
  'miscounts',
];
const history = new Set([...settledFields, ...fileFields, ...limits, ...reportedFields]);
const historyAfterStop = new Set([...history, ...decisionFields]);
const keys = new WeakMap<object, string>();
const keysAfterStop = new WeakMap<object, string>();

/** Effects have no state. */
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

/** These fields are input of an effect or another chart, and are not read in other states. */
type StartFieldRules = Readonly<Record<string, ((state: string) => boolean) | undefined>>;

const isSpawning = (state: string): boolean => state === 'running.starting';
const isBeforeItsProcess = (state: string): boolean => state === 'preparing' || isSpawning(state);

const epochsStart: StartFieldRules = {
  /** If a check is requested before the process is reported, the probe starts later and checks immediately. */
  isProbeRequested: isSpawning,
  /** Input of the epoch's preparation and process effect. */
  adopted: isBeforeItsProcess,
  /** Input of the epoch's probe. */
  startedAtMs: (state) => isBeforeItsProcess(state) || state.startsWith('running.initializing'),
};

const agentsStart: StartFieldRules = {
  /** The next supervisor receives the Envoys that are claimed or taken back then. */
  adoption: (state) => state.startsWith('active.preparing') && !state.endsWith('standing by'),
};

/** Contents become `f1;` and ordered restarts `o1;`, see {@link renumberGenerations}. */
function generations(context: string): string {
  return context.replace(/"files-(\d+)"/g, 'f$1;').replace(/"orders":(\d+)/g, 'o$1;');
}

/** Only equality and order matter: the oldest referenced content or restart becomes 0, the next one 1, … */
export function renumberGenerations(key: string): string {
  const seenNumbers = { f: 0, o: 0 };
  for (const [, kind, number] of key.matchAll(generation)) seenNumbers[kind as 'f' | 'o'] |= 1 << Number(number);
  return key.replace(
    generation,
    (_, kind: 'f' | 'o', number: string) => `${kind}${countSetBitsBelow(seenNumbers[kind], Number(number))};`,
  );
}

const generation = /([fo])(\d+);/g;

function countSetBitsBelow(set: number, number: number): number {
  let count = 0;
  for (let lowerBits = set & ((1 << number) - 1); lowerBits !== 0; lowerBits &= lowerBits - 1) count++;
  return count;
}

/**
 * What an agent that is killed leaves for the next one of its container: the record of what it knew, and a folder for each Envoy
 * (held-envoy.ts). It is written before what it says is done, whole or not at all; and it is believed only as a whole: of one that makes no
 * sense, every process that its folders name is ended, and the next agent begins as if there had been none.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AdoptedEpoch, Adoption, PersistedState } from '../../../../machines/agent/envoy/adoption.ts';
import type { EpochRecord } from '../../../../machines/agent/envoy/epoch-record.ts';
import { replaceFileSync } from '../../../runtime/files/replace-file.ts';
import { ensureRunDir, requireOwnDirectory } from '../../../runtime/files/run-dir.ts';
import { hostMs } from '../../../runtime/host-clock.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { type DescribedBinary, type EnvoyBinaries, firstBinary } from '../envoy-binaries.ts';
import { endHeld, envoyIn, withdrawStart } from '../held-envoy.ts';
import { removeQuietly, textOf } from '../quiet-files.ts';
import { unwritable } from '../scratch-folder.ts';
import type { EnvoyRun } from '../serving-envoy.ts';
import { containerIdentity, Neighbours } from './record-neighbours.ts';
import { openLiving } from './record-owner.ts';

/** The format of records. One of another format is not read: its Envoys are ended, and Envoy is started anew. */
export const recordFormat = 3;
const mostBytes = 64 * 1024;
const mostEpochs = 8;
/** How long a shell that was just started has to say so. */
const beginLimitMs = 500;
const beginPollMs = 5;

/** The path of the record. */
export const recordIn = (directory: string): string => join(directory, 'record.json');

/** One Envoy that was, or was about to be, started. */
interface KeptProcess extends EnvoyRun {
  /** Name of the Envoy's folder in the directory of the record. */
  readonly folder: string;
  readonly configFile: string;
  readonly adminPort: number;
  /** When the process was started, by {@link hostMs}. */
  readonly startedAtMs: number;
}

interface KeptRecord {
  readonly format: typeof recordFormat;
  readonly baseIds: readonly number[];
  readonly knowledge: PersistedState;
  /** When each epoch, by its name, came into its phase. */
  readonly since: Readonly<Record<string, number>>;
  readonly processes: readonly KeptProcess[];
  readonly binaries: readonly DescribedBinary[];
}

/** What the record is written from, beside what it is told. */
export interface RecordSources {
  readonly binaries: Pick<EnvoyBinaries, 'describe'>;
}

export class AgentRecord {
  readonly #directory: string;
  /** An open file that tells others that this container lives; undefined: they cannot be told. */
  readonly living: number | undefined;
  readonly #neighbours: Neighbours;
  #sources: RecordSources | undefined;
  #baseIds: readonly number[] = [];
  #knowledge: PersistedState | undefined;
  #since: Record<string, number> = {};
  #processes: readonly KeptProcess[] = [];
  #started = 0;
  #written = '';
  /** What the file says, or would say if it could be written. */
  #newest: KeptRecord | undefined;

  /**
   * Of the container that this process lives in: of the first process of this pid namespace.
   *
   * @throws ChartpilotError when the directory cannot be made
   */
  constructor(runDir: string) {
    ensureRunDir(runDir);
    this.#directory = join(runDir, `live-restore-${containerIdentity()}`);
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      // What is in there is run and killed: another user may have created it under this name where others can write to the run directory.
      requireOwnDirectory(this.#directory);
    } catch (error) {
      throw unwritable(this.#directory, error, '--runDir');
    }
    this.living = openLiving(this.#directory);
    this.#neighbours = new Neighbours(runDir, this.#directory);
  }

  /** Directories of other containers of which nobody here can tell whether they live. */
  get unknownOwners(): readonly string[] {
    return this.#neighbours.unknown;
  }

  /** The directory in which agents of this container meet. */
  get directory(): string {
    return this.#directory;
  }

  /** The base ids of the agent that has written it; undefined: it says nothing. Nothing is touched. */
  get baseIds(): readonly number[] | undefined {
    return (parseRecord(this.#text) ?? this.#newest)?.baseIds;
  }

  /**
   * Makes sure that another agent can go on with what it says.
   *
   * @throws Error when it cannot be written, or something else is there
   */
  require(): void {
    this.#written = '';
    this.#write();
    if (this.#newest === undefined || this.#text !== this.#written)
      throw new Error('state record not written: check the disk and the permissions of the run directory');
  }

  /** Whether another agent has been here. */
  get isThere(): boolean {
    return this.#text !== '' || this.#folders().length > 0;
  }

  /** What an agent that was killed has left; undefined: nothing that one could go on with, and then nothing of it runs any more. */
  async read(): Promise<FoundRecord | undefined> {
    // Where this agent has given up what no other agent has taken, its own record counts, also if it could not be written.
    const kept = parseRecord(this.#text) ?? this.#newest;
    const adoption = kept && (await this.#adoptionOf(kept));
    if (kept === undefined || adoption === undefined) {
      this.endAll();
      return undefined;
    }
    this.#processes = kept.processes;
    this.#since = { ...kept.since };
    this.#baseIds = kept.baseIds;
    const { baseIds, binaries } = kept;
    return { baseIds, binaries, adoption, pidOf: (run) => this.#pidOf(run) };
  }

  /** From now on the record is written whenever something changes. */
  keep(baseIds: readonly number[], sources: RecordSources): void {
    this.#baseIds = baseIds;
    this.#sources = sources;
  }

  /** State of the supervisor as last recorded. */
  supervisorKnows(knowledge: PersistedState): void {
    const before = this.#knowledge;
    this.#knowledge = knowledge;
    const phases = new Map(before?.epochs.map(({ name, phase }) => [name, phase]));
    const isKnown = ({ name, phase }: EpochRecord): boolean => before === undefined || phases.get(name) === phase;
    // A parent's time counts anew from a child that is live in a dead one's place.
    const news = knowledge.epochs.filter((epoch) => epoch.phase === 'live' && !isKnown(epoch));
    const isSuperseded = ({ phase, baseId, epoch }: EpochRecord): boolean =>
      phase === 'leaving' && news.some((child) => child.baseId === baseId && child.epoch === epoch + 1);
    this.#since = Object.fromEntries(
      knowledge.epochs.map((epoch) => {
        const goesOn = isKnown(epoch) && !isSuperseded(epoch);
        return [epoch.name, (goesOn ? this.#since[epoch.name] : undefined) ?? hostMs()];
      }),
    );
    this.#write();
  }

  /** An Envoy is about to be started. @returns the folder that is to be its */
  processStarts({
    epoch,
    baseId,
    adminPort,
    configFile,
  }: Pick<KeptProcess, keyof EnvoyRun | 'adminPort' | 'configFile'>): string {
    const folder = `envoy-${baseId}-${epoch}-${process.pid}-${startTimeOf(process.pid) ?? ''}-${this.#started++}`;
    const others = this.#processes.filter((other) => other.epoch !== epoch || other.baseId !== baseId);
    // An agent that was about to take over has seen this process exit and left its folder, which the record names no more.
    const earlier = this.#processes.filter((other) => !others.includes(other));
    for (const process of earlier) endHeld(join(this.#directory, process.folder));
    this.#processes = [...others, { epoch, baseId, folder, configFile, adminPort, startedAtMs: hostMs() }];
    this.#write();
    return join(this.#directory, folder);
  }

  /** Where one is that another agent has started. */
  folderOf({ epoch, baseId }: EnvoyRun): string | undefined {
    const kept = this.#processes.find((other) => other.epoch === epoch && other.baseId === baseId);
    return kept && join(this.#directory, kept.folder);
  }

  /** Ends whatever was started, and forgets it: for an agent that cannot go on with it, and for the end of one that can. */
  endAll(): number[] {
    const killed = this.#folders().flatMap((folder) => endHeld(join(this.#directory, folder)));
    this.#processes = [];
    this.#knowledge = undefined;
    this.#newest = undefined;
    this.#written = '';
    removeQuietly(this.#file);
    return killed;
  }

  /** Every Envoy is gone. */
  close(): void {
    this.endAll();
    this.#neighbours.stop();
    this.#sources = undefined;
    removeQuietly(this.#directory);
  }

  get #file(): string {
    return recordIn(this.#directory);
  }

  /** Empty where there is none, or more than an agent writes. */
  get #text(): string {
    const text = textOf(this.#file);
    return text.length > mostBytes ? '' : text;
  }

  #folders(): string[] {
    return namesIn(this.#directory).filter((name) => name.startsWith('envoy-'));
  }

  #pidOf(run: EnvoyRun): number | undefined {
    const folder = this.folderOf(run);
    return folder === undefined ? undefined : envoyIn(folder)?.pid;
  }

  /** Undefined: what it says is not what is there. */
  async #adoptionOf({ knowledge, since, processes }: KeptRecord): Promise<Adoption | undefined> {
    const epochs: AdoptedEpoch[] = [];
    for (const record of knowledge.epochs) {
      const kept = processes.find((other) => other.epoch === record.epoch && other.baseId === record.baseId);
      // The agent was killed before it had prepared it, or its shell had not begun.
      if (kept === undefined || !(await this.#hasBegun(kept.folder))) {
        if (record.phase === 'starting' || this.#isOver(record.phase, kept?.folder)) continue;
        return undefined;
      }
      const begun = since[record.name] ?? kept.startedAtMs;
      const elapsedMs = Math.max(0, hostMs() - begun);
      const unseenMs = unseenMsOf(record, processes, begun);
      const { startedAtMs } = kept;
      // The port is known when its process is started, which may be before the supervisor was told of it.
      const { configFile, adminPort } = kept;
      epochs.push({ ...record, adminPort, configFile, startedAtMs, elapsedMs, unseenMs });
    }
    const known = new Set(processes.map(({ folder }) => folder));
    const isStrange = this.#folders().some((folder) => !known.has(folder));
    if (isStrange || epochs.length === 0) return undefined;
    for (const process of processes) {
      const isAdopted = epochs.some(({ epoch, baseId }) => epoch === process.epoch && baseId === process.baseId);
      // For the agent that was killed this process's epoch was over.
      if (!isAdopted) endHeld(join(this.#directory, process.folder));
    }
    return { ...knowledge, epochs };
  }

  /** A folder goes when the end of its Envoy has been told: of one that was not needed any more nothing is left to take over. */
  #isOver(phase: EpochRecord['phase'], folder: string | undefined): boolean {
    if (phase !== 'leaving' && phase !== 'retiring') return false;
    return folder === undefined || !existsSync(join(this.#directory, folder));
  }

  async #hasBegun(name: string): Promise<boolean> {
    const folder = join(this.#directory, name);
    const deadline = performance.now() + beginLimitMs;
    while (envoyIn(folder) === undefined) {
      if (withdrawStart(folder) || performance.now() > deadline) return false;
      await sleep(beginPollMs);
    }
    return true;
  }

  /** Whole or not at all; what cannot be written costs the next agent what it would have said, and this one nothing. */
  #write(): void {
    if (this.#sources === undefined || this.#knowledge === undefined) return;
    const living = new Set(this.#folders());
    const latest = this.#processes.at(-1);
    const record: KeptRecord = {
      format: recordFormat,
      baseIds: this.#baseIds,
      knowledge: this.#knowledge,
      since: this.#since,
      processes: this.#processes.filter((process) => living.has(process.folder) || process === latest),
      binaries: this.#sources.binaries.describe(),
    };
    const text = JSON.stringify(record);
    this.#newest = record;
    if (text === this.#written) return;
    try {
      replaceFileSync(this.#file, text);
      this.#written = text;
    } catch {
      // An old record is worse than none: it names Envoys by what they are no more.
      removeQuietly(this.#file);
    }
  }
}

export interface FoundRecord extends Pick<KeptRecord, 'baseIds' | 'binaries'> {
  readonly adoption: Adoption;
  /** Number of an Envoy's process; undefined: the record has none. */
  pidOf(run: EnvoyRun): number | undefined;
}

/** How long the child of an epoch that leaves may have been live unseen, in milliseconds: at most since it was started. */
function unseenMsOf({ epoch, baseId, phase }: EpochRecord, processes: readonly KeptProcess[], begun: number): number {
  if (phase !== 'leaving') return 0;
  const child = processes.find((other) => other.epoch === epoch + 1 && other.baseId === baseId);
  return child === undefined ? 0 : Math.max(0, begun - child.startedAtMs);
}

/** Holds again what Envoys run from; what is not to be had any more nobody wants to go back to. */
export function restoreBinaries(
  binaries: Pick<EnvoyBinaries, 'restore'>,
  { binaries: described, adoption, pidOf }: FoundRecord,
): Adoption {
  const { epochs, desired, provenBinary } = adoption;
  const held = new Set([firstBinary]);
  for (const binary of described) {
    const running = epochs.find((epoch) => epoch.binary === binary.name);
    if (binaries.restore(binary, running && pidOf(running))) held.add(binary.name);
  }
  const serving = epochs.findLast(({ phase }) => phase === 'live')?.binary ?? firstBinary;
  const instead = (name: string): string => (held.has(name) ? name : held.has(serving) ? serving : firstBinary);
  return { ...adoption, desired: { ...desired, binary: instead(desired.binary) }, provenBinary: instead(provenBinary) };
}

/** Undefined unless all of it makes sense. */
export function parseRecord(text: string): KeptRecord | undefined {
  const record = parsed(text);
  if (!isObject(record) || record.format !== recordFormat) return undefined;
  const { baseIds, knowledge, since, processes, binaries } = record;
  const isWhole =
    isList(baseIds, isBaseId, 2) &&
    baseIds.length > 0 &&
    isKnowledge(knowledge) &&
    isObject(since) &&
    Object.values(since).every(isCount) &&
    isList(processes, isProcess, 4 * mostEpochs) &&
    isList(binaries, isDescribedBinary, 4 * mostEpochs) &&
    knowledge.epochs.every(({ baseId }) => baseIds.includes(baseId));
  return isWhole ? (record as unknown as KeptRecord) : undefined;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isBaseId = (value: unknown): value is number => isCount(value) && value <= 65_535;
const isPort = (value: unknown): value is number => isCount(value) && value <= 65_535;
const isOneOf = (value: unknown, ...allowed: readonly unknown[]): boolean => allowed.includes(value);

function isList<A>(value: unknown, isItem: (item: unknown) => item is A, most: number): value is A[] {
  return Array.isArray(value) && value.length <= most && value.every(isItem);
}

function isKnowledge(value: unknown): value is PersistedState {
  if (!isObject(value)) return false;
  const { desired, epochs, recovery, provenDigest, provenBinary, restart } = value;
  const isDesired = isObject(desired) && isText(desired.digest) && isCount(desired.orders) && isText(desired.binary);
  if (!isDesired || !isList(epochs, isEpoch, mostEpochs) || !isText(provenDigest) || !isText(provenBinary))
    return false;
  const count = (wanted: EpochRecord['phase']): number => epochs.filter(({ phase }) => phase === wanted).length;
  const isOneEach = new Set(epochs.map(({ name }) => name)).size === epochs.length;
  const isRestart = restart === undefined || (isObject(restart) && isText(restart.name) && isText(restart.reason));
  return (
    isOneEach &&
    count('live') <= 1 &&
    count('starting') <= 1 &&
    isOneOf(recovery, 'none', 'repair', 'replace') &&
    isRestart
  );
}

function isEpoch(value: unknown): value is EpochRecord {
  if (!isObject(value)) return false;
  const { name, epoch, baseId, adminPort, pid, digest, binary, orders, phase, doomed } = value;
  const isNamed = isText(name) && isCount(epoch) && (name === `epoch-${epoch}` || name === `epoch-${epoch}b`);
  const isPhase = isOneOf(phase, 'starting', 'live', 'leaving', 'retiring', 'unkillable');
  return (
    isNamed &&
    isBaseId(baseId) &&
    isPort(adminPort) &&
    isCount(pid) &&
    isText(digest) &&
    isText(binary) &&
    isCount(orders) &&
    isPhase &&
    isOneOf(doomed, true, false)
  );
}

/** Whether a value of the file describes a process, whose folder must be one of the record's directory. */
function isProcess(value: unknown): value is KeptProcess {
  if (!isObject(value)) return false;
  const { epoch, baseId, folder, configFile, adminPort, startedAtMs } = value;
  const isFolder = isText(folder) && /^envoy-[\d-]{1,100}$/.test(folder);
  const isRun = isCount(epoch) && isBaseId(baseId) && isPort(adminPort);
  return isFolder && isRun && isText(configFile) && isCount(startedAtMs);
}

function isDescribedBinary(value: unknown): value is DescribedBinary {
  if (!isObject(value)) return false;
  const { name, realPath, identity, digest } = value;
  return isText(name) && isText(realPath) && isText(identity) && (digest === undefined || isText(digest));
}

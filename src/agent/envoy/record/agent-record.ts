/**
 * State that a killed agent leaves for the next agent of its container: a record file, and a folder for each Envoy (held-envoy.ts). The file is
 * replaced atomically before the recorded action happens. If the record is invalid, the next agent kills all recorded processes and starts as if
 * there were no record.
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

/** Version of the format. For another version, the next agent kills the recorded Envoys and starts a new one. */
export const recordFormat = 3;
const mostBytes = 64 * 1024;
const mostEpochs = 8;
/** How long to wait for the files of a shell that was just started. */
const beginLimitMs = 500;
const beginPollMs = 5;

export const recordIn = (directory: string): string => join(directory, 'record.json');

/** An Envoy that was started or is about to be. */
interface KeptProcess extends EnvoyRun {
  /** Name of the Envoy's folder, next to the record. */
  readonly folder: string;
  readonly configFile: string;
  readonly adminPort: number;
  /** By {@link hostMs}. */
  readonly startedAtMs: number;
}

interface KeptRecord {
  readonly format: typeof recordFormat;
  readonly baseIds: readonly number[];
  readonly knowledge: PersistedState;
  /** When each epoch entered its phase; the key is the epoch's name. */
  readonly since: Readonly<Record<string, number>>;
  readonly processes: readonly KeptProcess[];
  readonly binaries: readonly DescribedBinary[];
}

/** Sources of recorded values that are not passed to the record. */
export interface RecordSources {
  readonly binaries: Pick<EnvoyBinaries, 'describe'>;
}

export class AgentRecord {
  readonly #directory: string;
  /** Open file that marks this container as alive for agents of other containers; `undefined` if named pipes are unavailable. */
  readonly living: number | undefined;
  readonly #neighbours: Neighbours;
  #sources: RecordSources | undefined;
  #baseIds: readonly number[] = [];
  #knowledge: PersistedState | undefined;
  #since: Record<string, number> = {};
  #processes: readonly KeptProcess[] = [];
  #started = 0;
  #written = '';
  /** Content of the file, or its intended content if it could not be written. */
  #newest: KeptRecord | undefined;

  /**
   * Opens the record of the container of this process, identified by its PID namespace.
   *
   * @throws ChartpilotError if the directory cannot be created
   */
  constructor(runDir: string) {
    ensureRunDir(runDir);
    this.#directory = join(runDir, `live-restore-${containerIdentity()}`);
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      // Processes named in this directory are adopted or killed. In a shared run directory, another user may have created it.
      requireOwnDirectory(this.#directory);
    } catch (error) {
      throw unwritable(this.#directory, error, '--runDir');
    }
    this.living = openLiving(this.#directory);
    this.#neighbours = new Neighbours(runDir, this.#directory);
  }

  /** Directories of other containers that may or may not be alive. */
  get unknownOwners(): readonly string[] {
    return this.#neighbours.unknown;
  }

  get directory(): string {
    return this.#directory;
  }

  /** Base IDs of the agent that wrote the record; `undefined` if there is no valid record. */
  get baseIds(): readonly number[] | undefined {
    return (parseRecord(this.#text) ?? this.#newest)?.baseIds;
  }

  /**
   * Ensures that the file is written and current, so that another agent can continue.
   *
   * @throws Error if the file cannot be written or has other content
   */
  require(): void {
    this.#written = '';
    this.#write();
    if (this.#newest === undefined || this.#text !== this.#written)
      throw new Error('state record not written: check the disk and the permissions of the run directory');
  }

  /** Whether a previous agent left a record or Envoys. */
  get isThere(): boolean {
    return this.#text !== '' || this.#folders().length > 0;
  }

  /** Reads the state that a killed agent left. Kills its Envoys and returns `undefined` if the state is unusable. */
  async read(): Promise<FoundRecord | undefined> {
    // If no agent took over what this agent handed over, its own record is valid, even if the file could not be written.
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

  /** Starts to write the record at each change. */
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
    // A parent's shutdown time restarts when a new child is live in place of a failed one.
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

  /**
   * Records an Envoy that is about to start.
   *
   * @returns the folder for it
   */
  processStarts({
    epoch,
    baseId,
    adminPort,
    configFile,
  }: Pick<KeptProcess, keyof EnvoyRun | 'adminPort' | 'configFile'>): string {
    const folder = `envoy-${baseId}-${epoch}-${process.pid}-${startTimeOf(process.pid) ?? ''}-${this.#started++}`;
    const others = this.#processes.filter((other) => other.epoch !== epoch || other.baseId !== baseId);
    // An agent that was about to take over has observed this process's exit and left its folder, which the record no longer names.
    const earlier = this.#processes.filter((other) => !others.includes(other));
    for (const process of earlier) endHeld(join(this.#directory, process.folder));
    this.#processes = [...others, { epoch, baseId, folder, configFile, adminPort, startedAtMs: hostMs() }];
    this.#write();
    return join(this.#directory, folder);
  }

  /** Folder of an Envoy that another agent has started. */
  folderOf({ epoch, baseId }: EnvoyRun): string | undefined {
    const kept = this.#processes.find((other) => other.epoch === epoch && other.baseId === baseId);
    return kept && join(this.#directory, kept.folder);
  }

  /** Kills all recorded Envoys and removes the record. */
  endAll(): number[] {
    const killed = this.#folders().flatMap((folder) => endHeld(join(this.#directory, folder)));
    this.#processes = [];
    this.#knowledge = undefined;
    this.#newest = undefined;
    this.#written = '';
    removeQuietly(this.#file);
    return killed;
  }

  /** Removes the record after the last Envoy has exited. */
  close(): void {
    this.endAll();
    this.#neighbours.stop();
    this.#sources = undefined;
    removeQuietly(this.#directory);
  }

  get #file(): string {
    return recordIn(this.#directory);
  }

  /** Empty if the file is missing or too large. */
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

  /** Builds the state to adopt; `undefined` if the record does not match the processes. */
  async #adoptionOf({ knowledge, since, processes }: KeptRecord): Promise<Adoption | undefined> {
    const epochs: AdoptedEpoch[] = [];
    for (const record of knowledge.epochs) {
      const kept = processes.find((other) => other.epoch === record.epoch && other.baseId === record.baseId);
      // The agent was killed before it prepared the epoch, or before the shell started.
      if (kept === undefined || !(await this.#hasBegun(kept.folder))) {
        if (record.phase === 'starting' || this.#isOver(record.phase, kept?.folder)) continue;
        return undefined;
      }
      const begun = since[record.name] ?? kept.startedAtMs;
      const elapsedMs = Math.max(0, hostMs() - begun);
      const unseenMs = unseenMsOf(record, processes, begun);
      const { startedAtMs } = kept;
      // The port is recorded when the process starts, possibly before the supervisor recorded it.
      const { configFile, adminPort } = kept;
      epochs.push({ ...record, adminPort, configFile, startedAtMs, elapsedMs, unseenMs });
    }
    const known = new Set(processes.map(({ folder }) => folder));
    const isStrange = this.#folders().some((folder) => !known.has(folder));
    if (isStrange || epochs.length === 0) return undefined;
    for (const process of processes) {
      const isAdopted = epochs.some(({ epoch, baseId }) => epoch === process.epoch && baseId === process.baseId);
      // The killed agent had already removed the epoch of this process.
      if (!isAdopted) endHeld(join(this.#directory, process.folder));
    }
    return { ...knowledge, epochs };
  }

  /** Whether the exit of an unneeded Envoy was handled, which removes its folder: nothing is left to adopt. */
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

  /** Replaces the file atomically. If this fails, only a later adoption is affected. */
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
      // Remove the old record: it describes Envoys that have changed since.
      removeQuietly(this.#file);
    }
  }
}

export interface FoundRecord extends Pick<KeptRecord, 'baseIds' | 'binaries'> {
  readonly adoption: Adoption;
  /** PID of a recorded Envoy; `undefined` if not recorded. */
  pidOf(run: EnvoyRun): number | undefined;
}

/** For a draining epoch, how long its child may have been live unobserved, in milliseconds: at most since its start. */
function unseenMsOf({ epoch, baseId, phase }: EpochRecord, processes: readonly KeptProcess[], begun: number): number {
  if (phase !== 'leaving') return 0;
  const child = processes.find((other) => other.epoch === epoch + 1 && other.baseId === baseId);
  return child === undefined ? 0 : Math.max(0, begun - child.startedAtMs);
}

/** Pins the binaries of the adopted Envoys again. Replaces binaries that are missing by the serving Envoy's or the first one. */
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

/** `undefined` unless all of the record is valid. */
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

/** Validates an entry of `processes`. Its folder must be directly in the record's directory. */
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

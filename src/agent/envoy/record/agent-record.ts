/**
 * State that a killed agent leaves for the next agent of its container: a record file, and a folder for each Envoy (detached-envoy.ts). If the record
 * is invalid, the next agent kills all recorded processes and starts as if there were no record.
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
import { killDetached, readEnvoyIdentity, withdrawStart } from '../detached-envoy.ts';
import { type DescribedBinary, type EnvoyBinaries, firstBinary } from '../envoy-binaries.ts';
import { readTextOrEmpty, removeQuietly } from '../quiet-files.ts';
import { unwritableError } from '../scratch-folder.ts';
import type { EpochId } from '../serving-envoy.ts';
import { containerIdentity, OtherRecords } from './other-records.ts';
import { markAlive } from './record-owner.ts';

/** An agent of another format kills the recorded Envoys and starts a new one. */
export const recordFormat = 3;
const maxRecordBytes = 64 * 1024;
const maxEpochs = 8;
/** Maximum wait for the files of a shell that was just started. */
const startLimitMs = 500;
const startPollMs = 5;

export const recordPath = (directory: string): string => join(directory, 'record.json');

interface RecordedProcess extends EpochId {
  readonly folder: string;
  readonly configFile: string;
  readonly adminPort: number;
  readonly startedAtMs: number;
}

interface RecordContent {
  readonly format: typeof recordFormat;
  readonly baseIds: readonly number[];
  readonly knowledge: PersistedState;
  /** Time at which each epoch, by its name, entered its phase. */
  readonly since: Readonly<Record<string, number>>;
  readonly processes: readonly RecordedProcess[];
  readonly binaries: readonly DescribedBinary[];
}

export interface RecordSources {
  readonly binaries: Pick<EnvoyBinaries, 'describe'>;
}

export class AgentRecord {
  readonly #directory: string;
  /** Open file that marks this container as alive for agents of other containers; `undefined` if named pipes are unavailable. */
  readonly living: number | undefined;
  readonly #otherRecords: OtherRecords;
  #sources: RecordSources | undefined;
  #baseIds: readonly number[] = [];
  #persistedState: PersistedState | undefined;
  #phaseStarts: Record<string, number> = {};
  #processes: readonly RecordedProcess[] = [];
  #startCount = 0;
  #writtenText = '';
  #currentContent: RecordContent | undefined;

  constructor(runDir: string) {
    ensureRunDir(runDir);
    this.#directory = join(runDir, `live-restore-${containerIdentity()}`);
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      // Processes named in this directory are adopted or killed. In a shared run directory, another user may have created it.
      requireOwnDirectory(this.#directory);
    } catch (error) {
      throw unwritableError(this.#directory, error, '--runDir');
    }
    this.living = markAlive(this.#directory);
    this.#otherRecords = new OtherRecords(runDir, this.#directory);
  }

  get unknownOwners(): readonly string[] {
    return this.#otherRecords.unknownOwners;
  }

  get directory(): string {
    return this.#directory;
  }

  get baseIds(): readonly number[] | undefined {
    return (parseRecord(this.#text) ?? this.#currentContent)?.baseIds;
  }

  /** @throws Error if the file cannot be written or has other content */
  throwIfWriteFailed(): void {
    this.#writtenText = '';
    this.#write();
    if (this.#currentContent === undefined || this.#text !== this.#writtenText)
      throw new Error('state record not written: check the disk and the permissions of the run directory');
  }

  get exists(): boolean {
    return this.#text !== '' || this.#folders().length > 0;
  }

  /** Kills the Envoys and returns `undefined` if the state is unusable. */
  async read(): Promise<FoundRecord | undefined> {
    // If no agent took over after a hand-over, the record of this agent is valid, even if the file could not be written.
    const storedRecord = parseRecord(this.#text) ?? this.#currentContent;
    const adoption = storedRecord && (await this.#adoptionOf(storedRecord));
    if (storedRecord === undefined || adoption === undefined) {
      this.endAll();
      return undefined;
    }
    this.#processes = storedRecord.processes;
    this.#phaseStarts = { ...storedRecord.since };
    this.#baseIds = storedRecord.baseIds;
    const { baseIds, binaries } = storedRecord;
    return { baseIds, binaries, adoption, pidOf: (run) => this.#pidOf(run) };
  }

  startRecording(baseIds: readonly number[], sources: RecordSources): void {
    this.#baseIds = baseIds;
    this.#sources = sources;
  }

  recordState(knowledge: PersistedState): void {
    const previous = this.#persistedState;
    this.#persistedState = knowledge;
    const phases = new Map(previous?.epochs.map(({ name, phase }) => [name, phase]));
    const isUnchanged = ({ name, phase }: EpochRecord): boolean => previous === undefined || phases.get(name) === phase;
    // A parent's shutdown time restarts when a new child is live in place of a failed one.
    const newlyLiveEpochs = knowledge.epochs.filter((epoch) => epoch.phase === 'live' && !isUnchanged(epoch));
    const isSuperseded = ({ phase, baseId, epoch }: EpochRecord): boolean =>
      phase === 'leaving' && newlyLiveEpochs.some((child) => child.baseId === baseId && child.epoch === epoch + 1);
    this.#phaseStarts = Object.fromEntries(
      knowledge.epochs.map((epoch) => {
        const isContinued = isUnchanged(epoch) && !isSuperseded(epoch);
        return [epoch.name, (isContinued ? this.#phaseStarts[epoch.name] : undefined) ?? hostMs()];
      }),
    );
    this.#write();
  }

  recordStart({
    epoch,
    baseId,
    adminPort,
    configFile,
  }: Pick<RecordedProcess, keyof EpochId | 'adminPort' | 'configFile'>): string {
    const folder = `envoy-${baseId}-${epoch}-${process.pid}-${startTimeOf(process.pid) ?? ''}-${this.#startCount++}`;
    const otherProcesses = this.#processes.filter((other) => other.epoch !== epoch || other.baseId !== baseId);
    // An earlier process of this epoch may have left its folder, because an agent that was about to take over observed the exit.
    const previousProcesses = this.#processes.filter((other) => !otherProcesses.includes(other));
    for (const process of previousProcesses) killDetached(join(this.#directory, process.folder));
    this.#processes = [...otherProcesses, { epoch, baseId, folder, configFile, adminPort, startedAtMs: hostMs() }];
    this.#write();
    return join(this.#directory, folder);
  }

  folderOf({ epoch, baseId }: EpochId): string | undefined {
    const recordedProcess = this.#processes.find((other) => other.epoch === epoch && other.baseId === baseId);
    return recordedProcess && join(this.#directory, recordedProcess.folder);
  }

  endAll(): number[] {
    const killedPids = this.#folders().flatMap((folder) => killDetached(join(this.#directory, folder)));
    this.#processes = [];
    this.#persistedState = undefined;
    this.#currentContent = undefined;
    this.#writtenText = '';
    removeQuietly(this.#file);
    return killedPids;
  }

  close(): void {
    this.endAll();
    this.#otherRecords.stop();
    this.#sources = undefined;
    removeQuietly(this.#directory);
  }

  get #file(): string {
    return recordPath(this.#directory);
  }

  get #text(): string {
    const text = readTextOrEmpty(this.#file);
    return text.length > maxRecordBytes ? '' : text;
  }

  #folders(): string[] {
    return namesIn(this.#directory).filter((name) => name.startsWith('envoy-'));
  }

  #pidOf(run: EpochId): number | undefined {
    const folder = this.folderOf(run);
    return folder === undefined ? undefined : readEnvoyIdentity(folder)?.pid;
  }

  async #adoptionOf({ knowledge, since, processes }: RecordContent): Promise<Adoption | undefined> {
    const epochs: AdoptedEpoch[] = [];
    for (const record of knowledge.epochs) {
      const recordedProcess = processes.find((other) => other.epoch === record.epoch && other.baseId === record.baseId);
      // The agent was killed before it prepared the epoch, or before the shell started.
      if (recordedProcess === undefined || !(await this.#hasStarted(recordedProcess.folder))) {
        if (record.phase === 'starting' || this.#hasEnded(record.phase, recordedProcess?.folder)) continue;
        return undefined;
      }
      const phaseStart = since[record.name] ?? recordedProcess.startedAtMs;
      const elapsedMs = Math.max(0, hostMs() - phaseStart);
      const unseenMs = unseenMsOf(record, processes, phaseStart);
      const { startedAtMs } = recordedProcess;
      // The port is recorded when the process starts, possibly before the supervisor recorded it.
      const { configFile, adminPort } = recordedProcess;
      epochs.push({ ...record, adminPort, configFile, startedAtMs, elapsedMs, unseenMs });
    }
    const recordedFolders = new Set(processes.map(({ folder }) => folder));
    const hasUnknownFolder = this.#folders().some((folder) => !recordedFolders.has(folder));
    if (hasUnknownFolder || epochs.length === 0) return undefined;
    for (const process of processes) {
      const isAdopted = epochs.some(({ epoch, baseId }) => epoch === process.epoch && baseId === process.baseId);
      // The killed agent had already removed the epoch of this process.
      if (!isAdopted) killDetached(join(this.#directory, process.folder));
    }
    return { ...knowledge, epochs };
  }

  /** A draining or retiring Envoy without a folder has exited, because the folder is removed when the exit is handled. */
  #hasEnded(phase: EpochRecord['phase'], folder: string | undefined): boolean {
    if (phase !== 'leaving' && phase !== 'retiring') return false;
    return folder === undefined || !existsSync(join(this.#directory, folder));
  }

  async #hasStarted(name: string): Promise<boolean> {
    const folder = join(this.#directory, name);
    const deadline = performance.now() + startLimitMs;
    while (readEnvoyIdentity(folder) === undefined) {
      if (withdrawStart(folder) || performance.now() > deadline) return false;
      await sleep(startPollMs);
    }
    return true;
  }

  /** If the write fails, only a later adoption is affected. */
  #write(): void {
    if (this.#sources === undefined || this.#persistedState === undefined) return;
    const livingFolders = new Set(this.#folders());
    const latestProcess = this.#processes.at(-1);
    const record: RecordContent = {
      format: recordFormat,
      baseIds: this.#baseIds,
      knowledge: this.#persistedState,
      since: this.#phaseStarts,
      processes: this.#processes.filter((process) => livingFolders.has(process.folder) || process === latestProcess),
      binaries: this.#sources.binaries.describe(),
    };
    const text = JSON.stringify(record);
    this.#currentContent = record;
    if (text === this.#writtenText) return;
    try {
      replaceFileSync(this.#file, text);
      this.#writtenText = text;
    } catch {
      // Remove the old record: it describes Envoys that have changed since.
      removeQuietly(this.#file);
    }
  }
}

export interface FoundRecord extends Pick<RecordContent, 'baseIds' | 'binaries'> {
  readonly adoption: Adoption;
  pidOf(run: EpochId): number | undefined;
}

/** Maximum time for which the child of a draining epoch can have been live unobserved. */
function unseenMsOf(
  { epoch, baseId, phase }: EpochRecord,
  processes: readonly RecordedProcess[],
  phaseStart: number,
): number {
  if (phase !== 'leaving') return 0;
  const child = processes.find((other) => other.epoch === epoch + 1 && other.baseId === baseId);
  return child === undefined ? 0 : Math.max(0, phaseStart - child.startedAtMs);
}

/** Replaces binaries that are missing by the serving Envoy's or the first one. */
export function restoreBinaries(
  binaries: Pick<EnvoyBinaries, 'restore'>,
  { binaries: recordedBinaries, adoption, pidOf }: FoundRecord,
): Adoption {
  const { epochs, desired, provenBinary } = adoption;
  const heldBinaries = new Set([firstBinary]);
  for (const binary of recordedBinaries) {
    const runningEpoch = epochs.find((epoch) => epoch.binary === binary.name);
    if (binaries.restore(binary, runningEpoch && pidOf(runningEpoch))) heldBinaries.add(binary.name);
  }
  const servingBinary = epochs.findLast(({ phase }) => phase === 'live')?.binary ?? firstBinary;
  const replacementFor = (name: string): string =>
    heldBinaries.has(name) ? name : heldBinaries.has(servingBinary) ? servingBinary : firstBinary;
  return {
    ...adoption,
    desired: { ...desired, binary: replacementFor(desired.binary) },
    provenBinary: replacementFor(provenBinary),
  };
}

/** Returns `undefined` unless the whole record is valid. */
export function parseRecord(text: string): RecordContent | undefined {
  const record = parseJson(text);
  if (!isObject(record) || record.format !== recordFormat) return undefined;
  const { baseIds, knowledge, since, processes, binaries } = record;
  const isValid =
    isList(baseIds, isBaseId, 2) &&
    baseIds.length > 0 &&
    isPersistedState(knowledge) &&
    isObject(since) &&
    Object.values(since).every(isCount) &&
    isList(processes, isProcess, 4 * maxEpochs) &&
    isList(binaries, isDescribedBinary, 4 * maxEpochs) &&
    knowledge.epochs.every(({ baseId }) => baseIds.includes(baseId));
  return isValid ? (record as unknown as RecordContent) : undefined;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function parseJson(text: string): unknown {
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
const isAllowed = (value: unknown, ...allowedValues: readonly unknown[]): boolean => allowedValues.includes(value);

function isList<A>(value: unknown, isItem: (item: unknown) => item is A, max: number): value is A[] {
  return Array.isArray(value) && value.length <= max && value.every(isItem);
}

function isPersistedState(value: unknown): value is PersistedState {
  if (!isObject(value)) return false;
  const { desired, epochs, recovery, provenDigest, provenBinary, restart } = value;
  const isDesired = isObject(desired) && isText(desired.digest) && isCount(desired.orders) && isText(desired.binary);
  if (!isDesired || !isList(epochs, isEpoch, maxEpochs) || !isText(provenDigest) || !isText(provenBinary)) return false;
  const count = (countedPhase: EpochRecord['phase']): number =>
    epochs.filter(({ phase }) => phase === countedPhase).length;
  const hasUniqueNames = new Set(epochs.map(({ name }) => name)).size === epochs.length;
  const isRestart = restart === undefined || (isObject(restart) && isText(restart.name) && isText(restart.reason));
  return (
    hasUniqueNames &&
    count('live') <= 1 &&
    count('starting') <= 1 &&
    isAllowed(recovery, 'none', 'repair', 'replace') &&
    isRestart
  );
}

function isEpoch(value: unknown): value is EpochRecord {
  if (!isObject(value)) return false;
  const { name, epoch, baseId, adminPort, pid, digest, binary, orders, phase, doomed } = value;
  const isNamed = isText(name) && isCount(epoch) && (name === `epoch-${epoch}` || name === `epoch-${epoch}b`);
  const isPhase = isAllowed(phase, 'starting', 'live', 'leaving', 'retiring', 'unkillable');
  return (
    isNamed &&
    isBaseId(baseId) &&
    isPort(adminPort) &&
    isCount(pid) &&
    isText(digest) &&
    isText(binary) &&
    isCount(orders) &&
    isPhase &&
    isAllowed(doomed, true, false)
  );
}

/** The folder of a process must be directly in the record's directory. */
function isProcess(value: unknown): value is RecordedProcess {
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

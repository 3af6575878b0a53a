import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import type { HandOver } from '../../../machines/agent/protocol.ts';
import { isSwitchOn } from '../../model/fields/switches.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { areHeldBySibling, socketNameOf } from '../envoy/base-ids/base-id-owners.ts';
import type { BaseIdTable } from '../envoy/base-ids/base-id-table.ts';
import type { EnvoyBinaries } from '../envoy/envoy-binaries.ts';
import type { ProcessTable } from '../envoy/process-table.ts';
import { type AgentRecord, type FoundRecord, restoreBinaries } from '../envoy/record/agent-record.ts';
import type { StoredFiles, StoredName } from '../envoy/record/stored-files.ts';
import type { ProxyOptions } from '../options/options.ts';

export interface Inheritance {
  readonly table: ProcessTable;
  readonly baseIds: BaseIdTable;
  readonly binaries: EnvoyBinaries;
  readonly record: AgentRecord;
  readonly runDir: string;
  readonly ownership: Ownership;
  readonly storedFiles: StoredFiles;
  readonly requiredNames: readonly StoredName[];
  readonly log: Logger;
}

/** This timeout is below that of the chart. */
export const takeBackLimitMs = 300;

/** A custom bootstrap is not patched. */
export function patchesBootstrap({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): boolean {
  return isSwitchOn(env.BOOTSTRAP_XDS_AGENT) && !config.customConfigFile;
}

/** Adopts the Envoys of a killed agent of this container. Without a usable state, it kills the remaining processes. */
export async function adoptFromKilledAgent(inheritance: Inheritance): Promise<ClaimedIds | undefined> {
  const { record, baseIds, table, runDir, storedFiles, requiredNames } = inheritance;
  const recordedIds = record.baseIds;
  const isHeldBySibling = (): boolean => areHeldBySibling(recordedIds);
  const claimedIds =
    recordedIds &&
    (await baseIds.resume(
      { runDir, isOwnedByOther: isHeldBySibling, onForeignName: foreignNameReporter(inheritance) },
      recordedIds,
    ));
  if (claimedIds === undefined && isHeldBySibling()) {
    table.handOver();
    return { baseIds: [], sweptFiles: [], isAnothers: true };
  }
  const foundRecord = claimedIds && (await record.read());
  const isComplete = requiredNames.every((name) => storedFiles.read(name) !== undefined);
  if (claimedIds !== undefined && foundRecord !== undefined && isComplete)
    return adoptRecord(inheritance, claimedIds, foundRecord);
  if (record.exists) record.endAll();
  if (claimedIds !== undefined) await baseIds.releaseWhenFree(claimedIds.baseIds);
  return undefined;
}

/** Any process of this network namespace can bind the socket name, but gains no control through it. */
const foreignNameReporter =
  ({ log }: Inheritance) =>
  (baseId: number): void =>
    log.warn('baseId.taken', { baseId, name: `@${socketNameOf(baseId)}` });

/**
 * Claims the base IDs before it adopts their Envoys, so that nothing of another agent is changed.
 *
 * @param handOver `undefined` if the older agent exited without a hand-over
 * @param signal aborted when the chart stops waiting; another agent may then claim the base IDs
 * @throws Error if the base IDs are unavailable
 */
export async function takeOver(
  inheritance: Inheritance,
  signal: AbortSignal,
  handOver?: HandOver,
): Promise<ClaimedIds> {
  const { record, baseIds, table, ownership, runDir } = inheritance;
  baseIds.handOverAll();
  const recordedIds = record.baseIds;
  if (recordedIds === undefined) throw new Error('no readable state record of the previous agent in the run directory');
  const onForeignName = foreignNameReporter(inheritance);
  const claimedIds = await baseIds.resume({ runDir, resumeLimitMs: takeBackLimitMs, onForeignName }, recordedIds);
  if (claimedIds === undefined) throw new Error('another agent holds the base IDs');
  try {
    signal.throwIfAborted();
    table.clear();
    const adoptedIds = await adoptRecord(inheritance, claimedIds, await record.read(), handOver);
    signal.throwIfAborted();
    return adoptedIds;
  } catch (error) {
    ownership.relinquish();
    baseIds.handOverAll();
    throw error;
  }
}

/** @param foundRecord `undefined` if the record is invalid and all its processes were killed */
async function adoptRecord(
  { record, binaries, ownership }: Inheritance,
  claimedIds: Omit<ClaimedIds, 'adoption'>,
  foundRecord: FoundRecord | undefined,
  handOver?: HandOver,
): Promise<ClaimedIds> {
  const adoption = foundRecord && { ...restoreBinaries(binaries, foundRecord), ...(handOver && { handOver }) };
  await ownership.acquireAll();
  record.startRecording(claimedIds.baseIds, { binaries });
  return { ...claimedIds, ...(adoption && { adoption }) };
}

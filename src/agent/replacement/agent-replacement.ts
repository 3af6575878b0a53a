/**
 * How an agent goes on with what another one of its container has left running: one that was killed, or one that gives way to it; and the
 * older one's side of that.
 */
import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import type { HandOver } from '../../../machines/agent/protocol.ts';
import { isOn } from '../../model/fields/switches.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { areHeldBySibling, nameOfId } from '../envoy/base-ids/base-id-holder.ts';
import type { BaseIdTable } from '../envoy/base-ids/base-id-table.ts';
import type { EnvoyBinaries } from '../envoy/envoy-binaries.ts';
import type { ProcessTable } from '../envoy/process-table.ts';
import { type AgentRecord, type FoundRecord, restoreBinaries } from '../envoy/record/agent-record.ts';
import type { ToldFiles, ToldName } from '../envoy/record/told-files.ts';
import type { ProxyOptions } from '../options/options.ts';

/** What passes from one agent to the next. */
export interface Inheritance {
  readonly table: ProcessTable;
  readonly baseIds: BaseIdTable;
  readonly binaries: EnvoyBinaries;
  readonly record: AgentRecord;
  readonly runDir: string;
  /** Names of sockets and ports. */
  readonly ownership: Ownership;
  readonly told: ToldFiles;
  /** What the next agent cannot go on without. */
  readonly needed: readonly ToldName[];
  readonly log: Logger;
}

/** How long taking back may take: less than the chart waits for it. */
export const takeBackLimitMs = 300;

/** A bootstrap of the user's own is used as it is. */
export function patchesBootstrap({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): boolean {
  return isOn(env.BOOTSTRAP_XDS_AGENT) && !config.customConfigFile;
}

/**
 * What an agent of this container has left that was killed; undefined: nothing, or nothing that one could go on with, and then it is ended.
 * The base ids first: a newer agent that was started beside this one may have taken over already, and then nothing is touched.
 */
export async function resumeWhatRuns(inheritance: Inheritance): Promise<ClaimedIds | undefined> {
  const { record, baseIds, table, runDir, told, needed } = inheritance;
  const recorded = record.baseIds;
  const isAnothers = (): boolean => areHeldBySibling(recorded);
  const claimed =
    recorded && (await baseIds.resume({ runDir, isAnothers, onStranger: tellOfStranger(inheritance) }, recorded));
  if (claimed === undefined && isAnothers()) {
    table.letGo();
    return { baseIds: [], sweptFiles: [], isAnothers: true };
  }
  const found = claimed && (await record.read());
  const isWhole = needed.every((name) => told.read(name) !== undefined);
  if (claimed !== undefined && found !== undefined && isWhole) return goOnWith(inheritance, claimed, found);
  if (record.isThere) record.endAll();
  if (claimed !== undefined) await baseIds.releaseWhenFree(claimed.baseIds);
  return undefined;
}

/** Any process of this network namespace can take that name, and decides nothing by it. */
const tellOfStranger =
  ({ log }: Inheritance) =>
  (baseId: number): void =>
    log.warn('baseId.taken', { baseId, name: `@${nameOfId(baseId)}` });

/**
 * The base ids first, and then what runs under them: nothing is touched that another agent has.
 *
 * @param handOver undefined if the older agent has ended without giving way
 * @param signal the chart waits no more: what is had by then is another agent's to take
 * @throws Error where they are not to be had
 */
export async function takeWhatRuns(
  inheritance: Inheritance,
  signal: AbortSignal,
  handOver?: HandOver,
): Promise<ClaimedIds> {
  const { record, baseIds, table, ownership, runDir } = inheritance;
  baseIds.letGoAll();
  const recorded = record.baseIds;
  if (recorded === undefined) throw new Error('no readable state record of the previous agent in the run directory');
  const onStranger = tellOfStranger(inheritance);
  const claimed = await baseIds.resume({ runDir, resumeLimitMs: takeBackLimitMs, onStranger }, recorded);
  if (claimed === undefined) throw new Error('another agent holds the base IDs');
  try {
    signal.throwIfAborted();
    table.forget();
    const taken = await goOnWith(inheritance, claimed, await record.read(), handOver);
    signal.throwIfAborted();
    return taken;
  } catch (error) {
    // Who has them decides: nobody would, from here.
    ownership.giveUp();
    baseIds.letGoAll();
    throw error;
  }
}

/** @param found undefined: nothing of it can be believed, and none of it runs any more */
async function goOnWith(
  { record, binaries, ownership }: Inheritance,
  claimed: Omit<ClaimedIds, 'adoption'>,
  found: FoundRecord | undefined,
  handOver?: HandOver,
): Promise<ClaimedIds> {
  const adoption = found && { ...restoreBinaries(binaries, found), ...(handOver && { handOver }) };
  await ownership.take();
  record.keep(claimed.baseIds, { binaries });
  return { ...claimed, ...(adoption && { adoption }) };
}

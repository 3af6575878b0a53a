/**
 * Orders received during a hand-over are executed by the agent that is then in control. The launcher only receives the older agent's exit code, which
 * therefore contains the due orders and the number of received signals: the launcher sends a signal that it forwarded too late to the next agent.
 */
import type { Signal } from '../protocol.ts';

export type DueOrder = 'SIGHUP' | 'SIGUSR1';

/** An agent exits with this code because another agent has control (EX_TEMPFAIL). */
export const successionExitCode = 75;

/** The exit code, which bin/pilot-agent decodes, has a bit for each due order, and contains how often each was received, modulo 3. */
const bits: Readonly<Record<DueOrder, number>> = { SIGHUP: 1, SIGUSR1: 2 };
const receivedUnits: Readonly<Record<DueOrder, number>> = { SIGHUP: 4, SIGUSR1: 12 };
const receivedModulus = 3;
const maxExitCode = successionExitCode + 35;
const dueOrders: readonly DueOrder[] = ['SIGHUP', 'SIGUSR1'];

export const isDueOrder = (signal: Signal): signal is DueOrder => Object.hasOwn(bits, signal);

/** The result is sorted like `dueOrders`. */
export const withOrder = (pendingOrders: readonly DueOrder[], order: DueOrder): DueOrder[] =>
  dueOrders.filter((dueOrder) => dueOrder === order || pendingOrders.includes(dueOrder));

export function successionExitCodeOf(
  pendingOrders: readonly DueOrder[],
  receivedCounts: ReadonlyMap<Signal, number> = new Map(),
): number {
  return dueOrders.reduce((code, order) => {
    const times = (receivedCounts.get(order) ?? 0) % receivedModulus;
    return code + (pendingOrders.includes(order) ? bits[order] : 0) + times * receivedUnits[order];
  }, successionExitCode);
}

/** `undefined` if the agent exited for another reason. */
export function dueOrdersOf(exitCode: number): DueOrder[] | undefined {
  if (exitCode < successionExitCode || exitCode > maxExitCode) return undefined;
  return dueOrders.filter((order) => ((exitCode - successionExitCode) & bits[order]) !== 0);
}

/**
 * Orders of a person that came while an agent gave way, or took over: they are done by whoever decides afterwards. All that the launcher sees
 * of the one that gives way is its exit code. So that tells which orders it has heard and not done, and how many it has heard at all: one that
 * the launcher has passed on and that was not heard came too late, and is told to the next agent. Pure.
 */
import type { Signal } from '../protocol.ts';

/** A hot restart, and logs to be reopened. */
export type DueOrder = 'SIGHUP' | 'SIGUSR1';

/** The exit code of an agent that has ended before or after another one's time (EX_TEMPFAIL): that one goes on, or the launcher starts one. */
export const successionExitCode = 75;

/** What an exit code is made of (bin/pilot-agent takes it apart): a bit for each order that is due, and how often each was heard, modulo 3. */
const bits: Readonly<Record<DueOrder, number>> = { SIGHUP: 1, SIGUSR1: 2 };
const receivedUnits: Readonly<Record<DueOrder, number>> = { SIGHUP: 4, SIGUSR1: 12 };
const receivedModulus = 3;
const maxExitCode = successionExitCode + 35;
const dueOrders: readonly DueOrder[] = ['SIGHUP', 'SIGUSR1'];

export const isDueOrder = (signal: Signal): signal is DueOrder => Object.hasOwn(bits, signal);

/** Each once, and in the same order whichever came first. */
export const withOrder = (due: readonly DueOrder[], order: DueOrder): DueOrder[] =>
  dueOrders.filter((one) => one === order || due.includes(one));

/** An order is done once, however often it was given meanwhile. `heard`: how often each signal has come. */
export function successionExitCodeOf(due: readonly DueOrder[], heard: ReadonlyMap<Signal, number> = new Map()): number {
  return dueOrders.reduce((code, order) => {
    const times = (heard.get(order) ?? 0) % receivedModulus;
    return code + (due.includes(order) ? bits[order] : 0) + times * receivedUnits[order];
  }, successionExitCode);
}

/** What one has left to do that gave way; undefined: it has ended in another way. */
export function dueOrdersOf(exitCode: number): DueOrder[] | undefined {
  if (exitCode < successionExitCode || exitCode > maxExitCode) return undefined;
  return dueOrders.filter((order) => ((exitCode - successionExitCode) & bits[order]) !== 0);
}

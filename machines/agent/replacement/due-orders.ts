/**
 * Orders of a person that came while an agent gave way, or took over: they are done by whoever decides afterwards. All that the launcher sees
 * of the one that gives way is its exit code. So that tells which orders it has heard and not done, and how many it has heard at all: one that
 * the launcher has passed on and that was not heard came too late, and is told to the next agent. Pure.
 */
import type { Signal } from '../protocol.ts';

/** A hot restart, and logs to be reopened. */
export type DueOrder = 'SIGHUP' | 'SIGUSR1';

/** The exit code of an agent that has ended before or after another one's time (EX_TEMPFAIL): that one goes on, or the launcher starts one. */
export const gaveWay = 75;

/** What an exit code is made of (bin/pilot-agent takes it apart): a bit for each order that is due, and how often each was heard, modulo 3. */
const bits: Readonly<Record<DueOrder, number>> = { SIGHUP: 1, SIGUSR1: 2 };
const heardUnits: Readonly<Record<DueOrder, number>> = { SIGHUP: 4, SIGUSR1: 12 };
const heardModulus = 3;
const largest = gaveWay + 35;
const all: readonly DueOrder[] = ['SIGHUP', 'SIGUSR1'];

export const isDueOrder = (signal: Signal): signal is DueOrder => Object.hasOwn(bits, signal);

/** Each once, and in the same order whichever came first. */
export const withOrder = (due: readonly DueOrder[], order: DueOrder): DueOrder[] =>
  all.filter((one) => one === order || due.includes(one));

/** An order is done once, however often it was given meanwhile. `heard`: how often each signal has come. */
export function gaveWayWith(due: readonly DueOrder[], heard: ReadonlyMap<Signal, number> = new Map()): number {
  return all.reduce((code, order) => {
    const times = (heard.get(order) ?? 0) % heardModulus;
    return code + (due.includes(order) ? bits[order] : 0) + times * heardUnits[order];
  }, gaveWay);
}

/** What one has left to do that gave way; undefined: it has ended in another way. */
export function dueAfter(exitCode: number): DueOrder[] | undefined {
  if (exitCode < gaveWay || exitCode > largest) return undefined;
  return all.filter((order) => ((exitCode - gaveWay) & bits[order]) !== 0);
}

/** Selects the complete or brief picture of a machine; in the brief one, inactive states are folded. */

import { computed, signal } from '@preact/signals';
import { briefFor, wholeRows } from '../../src/debugger/statechart/brief-choice.ts';
import { openFor } from '../../src/debugger/statechart/fold-statechart.ts';
import { ownValue } from '../../src/runtime/json-object.ts';
import { remember, remembered } from '../model/page-storage.ts';
import { session, size } from '../model/place.ts';
import { definitionOf } from './chart-current.ts';
import { activeLeaves } from './chart-lights.ts';
import { adoptStyleOf } from './chart-picture.ts';

const wanted = signal(remembered('charts'));

/** Whether charts show their complete definitions, which is the default for a trace without records. */
export const showsWhole = computed(() => (wanted.value ?? (size.value === 0 ? 'whole' : 'brief')) === 'whole');

/** States that the user has opened, by machine: their numbers, and `wholeRows`. */
const opened = signal<Readonly<Record<string, readonly number[]>>>(readOpened());

export function toggleWhole(): void {
  const next = showsWhole.value ? 'brief' : 'whole';
  wanted.value = next;
  remember('charts', next);
}

/** Brief or complete picture of a machine with an actor in this state; `undefined` if the machine has no picture. */
export function shownPicture(machine: string, state: string): string | undefined {
  const chart = definitionOf(machine);
  const brief = ownValue(session.value?.briefCharts, machine) ?? [];
  const found =
    showsWhole.value || chart === undefined
      ? undefined
      : briefFor(chart, brief, activeLeaves(chart, state), ownValue(opened.value, machine) ?? []);
  const whole = ownValue(session.value?.charts, machine);
  if (whole !== undefined && found !== undefined) adoptStyleOf(whole);
  return found?.text ?? whole;
}

export function whyNoPicture(machine: string): string {
  return ownValue(session.value?.notDrawn, machine) ?? 'the trace does not contain its definition';
}

/** Opens or folds a state. Without a number: the shortened rows. */
export function toggleState(machine: string, number: number | undefined): void {
  const chart = definitionOf(machine);
  if (chart === undefined) return;
  const before = ownValue(opened.value, machine) ?? [];
  const at = number ?? wholeRows;
  const after = before.includes(at)
    ? before.filter((one) => one !== at)
    : [...before, at, ...(number === undefined ? [] : openFor(chart, [number]))];
  opened.value = { ...opened.value, [machine]: [...new Set(after)] };
  remember('opened-states', JSON.stringify(opened.value));
}

export function isOpened(machine: string, number: number | undefined): boolean {
  return ownValue(opened.value, machine)?.includes(number ?? wholeRows) === true;
}

/** Data stored by another version of the page may have any form. */
function readOpened(): Readonly<Record<string, readonly number[]>> {
  try {
    const read: unknown = JSON.parse(remembered('opened-states') ?? '{}');
    const entries = Object.entries(read ?? {}).filter(([, numbers]) => Array.isArray(numbers));
    return Object.fromEntries(entries as [string, number[]][]);
  } catch {
    return {};
  }
}

/** In the brief picture of a machine, inactive states are folded. */

import { computed, signal } from '@preact/signals';
import { chooseBriefChart, wholeRows } from '../../src/debugger/statechart/brief-choice.ts';
import { openStatesFor } from '../../src/debugger/statechart/fold-statechart.ts';
import { ownValue } from '../../src/runtime/json-object.ts';
import { storedValue, storeValue } from '../model/page-storage.ts';
import { session, size } from '../model/place.ts';
import { definitionOf } from './chart-current.ts';
import { activeLeaves } from './chart-lights.ts';
import { adoptStyleOf } from './chart-picture.ts';

const pictureChoice = signal(storedValue('charts'));

/** A trace without records shows complete definitions by default. */
export const showsCompleteCharts = computed(
  () => (pictureChoice.value ?? (size.value === 0 ? 'whole' : 'brief')) === 'whole',
);

/** By machine: state numbers, and `wholeRows`. */
const openedStates = signal<Readonly<Record<string, readonly number[]>>>(readOpenedStates());

export function toggleCompleteCharts(): void {
  const nextForm = showsCompleteCharts.value ? 'brief' : 'whole';
  pictureChoice.value = nextForm;
  storeValue('charts', nextForm);
}

export function shownPicture(machine: string, state: string): string | undefined {
  const chart = definitionOf(machine);
  const brief = ownValue(session.value?.briefCharts, machine) ?? [];
  const foldedPicture =
    showsCompleteCharts.value || chart === undefined
      ? undefined
      : chooseBriefChart(chart, brief, activeLeaves(chart, state), ownValue(openedStates.value, machine) ?? []);
  const wholePicture = ownValue(session.value?.charts, machine);
  if (wholePicture !== undefined && foldedPicture !== undefined) adoptStyleOf(wholePicture);
  return foldedPicture?.text ?? wholePicture;
}

export function missingPictureReason(machine: string): string {
  return ownValue(session.value?.notDrawn, machine) ?? 'the trace does not contain its definition';
}

/** Without a number, opens or folds the shortened rows. */
export function toggleState(machine: string, number: number | undefined): void {
  const chart = definitionOf(machine);
  if (chart === undefined) return;
  const openedNumbers = ownValue(openedStates.value, machine) ?? [];
  const row = number ?? wholeRows;
  const nextOpened = openedNumbers.includes(row)
    ? openedNumbers.filter((openedRow) => openedRow !== row)
    : [...openedNumbers, row, ...(number === undefined ? [] : openStatesFor(chart, [number]))];
  openedStates.value = { ...openedStates.value, [machine]: [...new Set(nextOpened)] };
  storeValue('opened-states', JSON.stringify(openedStates.value));
}

export function isOpenedByUser(machine: string, number: number | undefined): boolean {
  return ownValue(openedStates.value, machine)?.includes(number ?? wholeRows) === true;
}

/** Data stored by another version of the page may have any form. */
function readOpenedStates(): Readonly<Record<string, readonly number[]>> {
  try {
    const parsedValue: unknown = JSON.parse(storedValue('opened-states') ?? '{}');
    const entries = Object.entries(parsedValue ?? {}).filter(([, numbers]) => Array.isArray(numbers));
    return Object.fromEntries(entries as [string, number[]][]);
  } catch {
    return {};
  }
}

import { computed, signal } from '@preact/signals';
import { chosenActor, range, recording, size } from '../model/place.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { ContractPlaces } from './sequence-contract.ts';
import { type Columns, columnsOf, columnsWith, maxColumns, participantOrder } from './sequence-lifelines.ts';
import { type RowFilter, SequenceIndex, SequenceRows } from './sequence-rows.ts';

export const showsOnlyChosen = signal(false);
export const showsStates = signal(true);
export const showsInternal = signal(false);
/** Whether effects are drawn on the lifeline of their owner. */
export const foldsEffects = signal(true);

interface CurrentSequence {
  readonly index: SequenceIndex;
  readonly order: ReadonlyMap<string, number>;
  readonly contractPlacesOf: ContractPlaces;
}

const cachedByRecording = new WeakMap<PageRecording, CurrentSequence>();

function cachedStateOf(openRecording: PageRecording): CurrentSequence {
  const cachedState = cachedByRecording.get(openRecording) ?? {
    index: new SequenceIndex(openRecording),
    order: participantOrder(openRecording.diagrams),
    contractPlacesOf: new ContractPlaces(openRecording.diagrams),
  };
  cachedByRecording.set(openRecording, cachedState);
  return cachedState;
}

const filter = computed<RowFilter>(() => ({
  ...(showsOnlyChosen.value && chosenActor.value !== undefined && { actor: chosenActor.value }),
  states: showsStates.value,
  internal: showsInternal.value,
}));

const rowsOfFilter = computed<SequenceRows | undefined>(() => {
  const openRecording = recording.value;
  return openRecording === undefined ? undefined : new SequenceRows(cachedStateOf(openRecording).index, filter.value);
});

/** The rows object stays the same while it grows. */
export const shownRows = computed<{ rows: SequenceRows; length: number } | undefined>(() => {
  const rows = rowsOfFilter.value;
  if (rows === undefined || size.value < 0) return undefined;
  rows.index.grow();
  rows.grow();
  return { rows, length: rows.length };
});

let columns:
  | { rows: SequenceRows; lifelines: number; folds: boolean; actor: string | undefined; columns: Columns }
  | undefined;

/** Rebuilt only after a lifeline was added. */
const allColumns = computed<Columns>(() => {
  const currentRows = shownRows.value;
  if (currentRows === undefined) return { list: [], columnIndexOf: () => undefined };
  const { rows } = currentRows;
  const folds = foldsEffects.value;
  // If every lifeline fits, all are shown, whichever actor is chosen.
  const actor = rows.lifelines.size > maxColumns ? chosenActor.value : undefined;
  const isUnchanged =
    columns?.rows === rows &&
    columns.lifelines === rows.lifelines.size &&
    columns.folds === folds &&
    columns.actor === actor;
  if (!isUnchanged) {
    columns = {
      rows,
      folds,
      actor,
      lifelines: rows.lifelines.size,
      columns: columnsOf(rows.lifelines, cachedStateOf(rows.index.recording).order, { foldEffects: folds, actor }),
    };
  }
  return columns!.columns;
});

/** The columns with a message in the chosen range; all columns if there is no range or no such message. */
export const shownColumns = computed<Columns>(() => {
  const chosenRange = range.value;
  const columns = allColumns.value;
  const rows = rowsOfFilter.value;
  if (chosenRange === undefined || rows === undefined) return columns;
  const visibleColumns = columnsWith(columns, rows.lifelinesWithin(...chosenRange));
  return visibleColumns.list.length === 0 ? columns : visibleColumns;
});

export function contractPlaces(openRecording: PageRecording): ContractPlaces {
  return cachedStateOf(openRecording).contractPlacesOf;
}

import { escapedPointer, isObject, ownValue } from '../../runtime/json-object.ts';
import { tooDeepMarker } from '../../runtime/trace/redact.ts';
import { redacted } from '../../runtime/trace/secret-texts.ts';
import type { ContextChange, TraceRecord } from '../../runtime/trace/trace.ts';

const cutList = /^… \((\d+) items\)$/;
const cutText = /… \(\d+ characters\)$/;

/** `undefined` for a complete list. */
export function lengthBeforeTruncation(items: readonly unknown[]): number | undefined {
  const lastItem = items.at(-1);
  const [, length] = (typeof lastItem === 'string' && cutList.exec(lastItem)) || [];
  return length === undefined ? undefined : Number(length);
}

export function isCutText(text: string): boolean {
  return cutText.test(text);
}

/** Numbers, times and causes of records may differ. */
const comparedFields = {
  spawn: ['actor', 'parent', 'machine', 'input'],
  event: ['from', 'to', 'event'],
  'timer-started': ['actor', 'timer', 'state', 'ms'],
  timer: ['actor', 'timer'],
  transition: ['actor', 'from', 'to', 'on', 'change'],
  step: ['actor', 'on', 'change'],
  effect: ['actor', 'effect', 'params'],
  stop: ['actor', 'status', 'output', 'error'],
  unexpected: ['actor', 'on', 'state'],
  log: [],
} as const satisfies Record<TraceRecord['kind'], readonly string[]>;

/** @returns the first field that differs, as a JSON Pointer (`/event/epoch`) */
export function differingField(recordedValue: TraceRecord, replayedValue: TraceRecord): string | undefined {
  if (recordedValue.kind !== replayedValue.kind) return '/kind';
  const [recordedFields, replayedFields] = [recordedValue, replayedValue] as unknown as Record<string, unknown>[];
  for (const field of comparedFields[recordedValue.kind]) {
    const difference =
      field === 'change'
        ? differingChange(recordedFields![field], replayedFields![field])
        : differingPlace(recordedFields![field], replayedFields![field], `/${field}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

/** Ignores the order in which fields of a context were assigned. */
function differingChange(recordedValue: unknown, replayedValue: unknown): string | undefined {
  const recordedFields = new Map(((recordedValue ?? []) as ContextChange[]).map((change) => [change.path, change]));
  const replayedFields = new Map(((replayedValue ?? []) as ContextChange[]).map((change) => [change.path, change]));
  for (const path of new Set([...recordedFields.keys(), ...replayedFields.keys()])) {
    const [recordedField, replayedField] = [recordedFields.get(path), replayedFields.get(path)];
    if (recordedField === undefined || replayedField === undefined) return `/change${path}`;
    const difference = differingPlace(recordedField.value, replayedField.value, `/change${path}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function differingPlace(recordedValue: unknown, replayedValue: unknown, path: string): string | undefined {
  if (Object.is(recordedValue, replayedValue)) return undefined;
  if (typeof recordedValue === 'string') return areTextsEqual(recordedValue, replayedValue) ? undefined : path;
  if (Array.isArray(recordedValue)) return differingItem(recordedValue, replayedValue, path);
  if (isObject(recordedValue)) {
    if (!isObject(replayedValue)) return path;
    for (const key of new Set([...Object.keys(recordedValue), ...Object.keys(replayedValue)])) {
      const difference = differingPlace(
        ownValue(recordedValue, key),
        ownValue(replayedValue, key),
        `${path}/${escapedPointer(key)}`,
      );
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  // JSON has no NaN and no minus zero.
  return JSON.stringify(recordedValue) === JSON.stringify(replayedValue) ? undefined : path;
}

function differingItem(recordedValue: readonly unknown[], replayedValue: unknown, path: string): string | undefined {
  if (!Array.isArray(replayedValue)) return path;
  const isTruncated = lengthBeforeTruncation(recordedValue) !== undefined;
  const comparedLength = isTruncated ? recordedValue.length - 1 : recordedValue.length;
  for (let i = 0; i < comparedLength; i++) {
    // JSON writes null for missing items.
    const difference = differingPlace(recordedValue[i], replayedValue[i] ?? null, `${path}/${i}`);
    if (difference !== undefined) return difference;
  }
  return isTruncated || replayedValue.length === comparedLength ? undefined : `${path}/${comparedLength}`;
}

/** Recorders that did not record the name of an actor wrote this. */
const unnamedActor = '[Actor]';

function areTextsEqual(recordedValue: string, replayedValue: unknown): boolean {
  if (recordedValue === unnamedActor && typeof replayedValue === 'string' && replayedValue.startsWith('[Actor '))
    return true;
  if (recordedValue === redacted || recordedValue === tooDeepMarker) return true;
  if (typeof replayedValue !== 'string') return false;
  const textBeforeCut = recordedValue.replace(cutText, '');
  const segments = textBeforeCut.split(redacted);
  if (segments.length === 1)
    return textBeforeCut === recordedValue ? recordedValue === replayedValue : replayedValue.startsWith(textBeforeCut);
  return containsPartsInOrder(replayedValue, segments, textBeforeCut !== recordedValue);
}

/** Any text may be between the parts, and after them if the text was truncated. */
function containsPartsInOrder(
  text: string,
  [first = '', ...otherParts]: readonly string[],
  isTruncated: boolean,
): boolean {
  if (!text.startsWith(first)) return false;
  const lastItem = isTruncated ? '' : (otherParts.pop() ?? '');
  let offset = first.length;
  for (const segment of otherParts) {
    const matchIndex = text.indexOf(segment, offset);
    if (matchIndex < 0) return false;
    offset = matchIndex + segment.length;
  }
  return isTruncated || (text.endsWith(lastItem) && text.length - lastItem.length >= offset);
}

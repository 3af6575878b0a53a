import { escapedPointer, isObject, ownValue } from '../../runtime/json-object.ts';
import { tooDeep } from '../../runtime/trace/redact.ts';
import { redacted } from '../../runtime/trace/secret-texts.ts';
import type { ContextChange, TraceRecord } from '../../runtime/trace/trace.ts';

const cutList = /^… \((\d+) items\)$/;
const cutText = /… \(\d+ characters\)$/;

/** The original length of a truncated list, from its last item; `undefined` for a complete list. */
export function lengthBeforeCut(list: readonly unknown[]): number | undefined {
  const last = list.at(-1);
  const [, length] = (typeof last === 'string' && cutList.exec(last)) || [];
  return length === undefined ? undefined : Number(length);
}

export function isCutText(text: string): boolean {
  return cutText.test(text);
}

/** The fields of each kind of record that a replay must reproduce. Numbers, times and causes are not among them. */
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

/**
 * @returns the first field that differs, as a JSON Pointer (`/event/epoch`); `undefined` if the records are equal.
 * Omitted or truncated data equals any value.
 */
export function differingField(recorded: TraceRecord, replayed: TraceRecord): string | undefined {
  if (recorded.kind !== replayed.kind) return '/kind';
  const [recordedFields, replayedFields] = [recorded, replayed] as unknown as Record<string, unknown>[];
  for (const field of comparedFields[recorded.kind]) {
    const difference =
      field === 'change'
        ? differingChange(recordedFields![field], replayedFields![field])
        : differingPlace(recordedFields![field], replayedFields![field], `/${field}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

/** Ignores the order in which fields of a context were assigned. */
function differingChange(recorded: unknown, replayed: unknown): string | undefined {
  const recordedFields = new Map(((recorded ?? []) as ContextChange[]).map((change) => [change.path, change]));
  const replayedFields = new Map(((replayed ?? []) as ContextChange[]).map((change) => [change.path, change]));
  for (const path of new Set([...recordedFields.keys(), ...replayedFields.keys()])) {
    const [recordedField, replayedField] = [recordedFields.get(path), replayedFields.get(path)];
    if (recordedField === undefined || replayedField === undefined) return `/change${path}`;
    const difference = differingPlace(recordedField.value, replayedField.value, `/change${path}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function differingPlace(recorded: unknown, replayed: unknown, path: string): string | undefined {
  if (Object.is(recorded, replayed)) return undefined;
  if (typeof recorded === 'string') return isSameText(recorded, replayed) ? undefined : path;
  if (Array.isArray(recorded)) return differingItem(recorded, replayed, path);
  if (isObject(recorded)) {
    if (!isObject(replayed)) return path;
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(replayed)])) {
      const difference = differingPlace(
        ownValue(recorded, key),
        ownValue(replayed, key),
        `${path}/${escapedPointer(key)}`,
      );
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  // JSON has no NaN and no minus zero.
  return JSON.stringify(recorded) === JSON.stringify(replayed) ? undefined : path;
}

function differingItem(recorded: readonly unknown[], replayed: unknown, path: string): string | undefined {
  if (!Array.isArray(replayed)) return path;
  const isCut = lengthBeforeCut(recorded) !== undefined;
  const knownLength = isCut ? recorded.length - 1 : recorded.length;
  for (let i = 0; i < knownLength; i++) {
    // JSON writes null for missing items.
    const difference = differingPlace(recorded[i], replayed[i] ?? null, `${path}/${i}`);
    if (difference !== undefined) return difference;
  }
  return isCut || replayed.length === knownLength ? undefined : `${path}/${knownLength}`;
}

/** A reference to an actor in traces of a recorder that did not record its name. */
const unnamedActor = '[Actor]';

function isSameText(recorded: string, replayed: unknown): boolean {
  if (recorded === unnamedActor && typeof replayed === 'string' && replayed.startsWith('[Actor ')) return true;
  if (recorded === redacted || recorded === tooDeep) return true;
  if (typeof replayed !== 'string') return false;
  const keptText = recorded.replace(cutText, '');
  const segments = keptText.split(redacted);
  if (segments.length === 1) return keptText === recorded ? recorded === replayed : replayed.startsWith(keptText);
  return hasParts(replayed, segments, keptText !== recorded);
}

/** Whether a text consists of these parts with any text between them, and any text after them if it was truncated. */
function hasParts(text: string, [first = '', ...rest]: readonly string[], isCut: boolean): boolean {
  if (!text.startsWith(first)) return false;
  const last = isCut ? '' : (rest.pop() ?? '');
  let offset = first.length;
  for (const segment of rest) {
    const matchIndex = text.indexOf(segment, offset);
    if (matchIndex < 0) return false;
    offset = matchIndex + segment.length;
  }
  return isCut || (text.endsWith(last) && text.length - last.length >= offset);
}

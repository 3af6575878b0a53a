/** Conditions of a status by the rules of `metav1.Condition` (spec/kubernetes.md §5): ours are put among those of others. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../../runtime/json-object.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';

/** As it is meant to be. When it has changed is found out where it is put in place. */
export interface WantedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** `BackendNotFound`; what may not be in one is left out. */
  readonly reason: string;
  /** Words for people, cut where they are too long. */
  readonly message: string;
}

/** What the conditions are said of, and when. */
export interface ConditionMoment {
  /** Generation of the object that they were made of; absent where the kind has none. */
  readonly generation?: number;
  /** RFC 3339, whole seconds. */
  readonly time: string;
}

/** Bounds of the API. */
const maxTypeCharacters = 316;
const maxReasonCharacters = 1_024;
const maxMessageCharacters = 32_768;

/** RFC 3339 as far as an API server takes it. */
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * A list of conditions with ours in it, each in the place that it had. What others have put there stays, whatever it is. One of ours that
 * was said of a newer generation stays as well: whoever said it knows more.
 *
 * @param present of the status as it was read: a stranger may have made it
 * @param own no two of a type
 * @param gone types of ours that are said no more
 * @returns `present` itself where nothing is another
 */
export function withConditions(
  present: unknown,
  own: readonly WantedCondition[],
  moment: ConditionMoment,
  gone: readonly string[] = [],
): readonly unknown[] {
  const left = new Map(own.map((condition) => [typeOf(condition), condition]));
  const known = new Set([...left.keys(), ...gone]);
  const before: readonly unknown[] = Array.isArray(present) ? present : [];
  const after: unknown[] = [];
  for (const one of before) {
    const type = isObject(one) && typeof one.type === 'string' ? one.type : undefined;
    const isOwn = type !== undefined && known.has(type);
    const wanted = isOwn ? left.get(type) : undefined;
    // Of two of one type the first counts.
    if (isOwn && wanted === undefined) continue;
    after.push(wanted === undefined ? one : conditionAfter(one as Fields, wanted, moment));
    if (isOwn) left.delete(type);
  }
  for (const wanted of left.values()) after.push(conditionAfter({}, wanted, moment));
  return Array.isArray(present) && isDeepStrictEqual(present, after) ? present : after;
}

/** Whether somebody has said a condition of a newer generation than the one that is known. */
export function isObservedLater(value: unknown, generation: number | undefined): boolean {
  if (generation === undefined || !isObject(value)) return false;
  const observed = observedGenerationOf(value);
  return observed !== undefined && observed > generation;
}

type Fields = Readonly<Record<string, unknown>>;

function conditionAfter(before: Fields, wanted: WantedCondition, { generation, time }: ConditionMoment): Fields {
  if (isObservedLater(before, generation)) return before;
  const { lastTransitionTime: since } = before;
  const isKept = before.status === wanted.status && typeof since === 'string' && timeText.test(since);
  return {
    type: typeOf(wanted),
    status: wanted.status,
    reason: reasonOf(wanted.reason),
    message: messageOf(wanted.message),
    lastTransitionTime: isKept ? since : time,
    ...(generation !== undefined && { observedGeneration: generationAs(before.observedGeneration, generation) }),
  };
}

/** Istio's own resources allow it as a text, which says the same. */
function generationAs(before: unknown, generation: number): unknown {
  return before === String(generation) ? before : generation;
}

function observedGenerationOf({ observedGeneration: value }: Fields): number | undefined {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

function typeOf({ type }: WantedCondition): string {
  return type.slice(0, maxTypeCharacters);
}

function reasonOf(text: string): string {
  const legal = text
    .replaceAll(/[^A-Za-z0-9_,:]/g, '')
    .replace(/^[^A-Za-z]+/, '')
    .slice(0, maxReasonCharacters)
    .replace(/[,:]+$/, '');
  return legal === '' ? 'Unknown' : legal;
}

/** One line, escaped: the text may quote an object or a proxy, and other people read it in their terminals. */
function messageOf(text: string): string {
  return visibleLine(text, maxMessageCharacters);
}

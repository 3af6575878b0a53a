/** Follows the rules of `metav1.Condition`, and keeps conditions of other writers. */
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../../runtime/json-object.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';

/** The transition time depends on the present condition. */
export interface DesiredCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** Invalid characters are removed. */
  readonly reason: string;
  /** Truncated if too long. */
  readonly message: string;
}

export interface ConditionMoment {
  /** `undefined` if the kind has no generation. */
  readonly generation?: number;
  /** RFC 3339 without fractions of seconds. */
  readonly time: string;
}

/** Maximum length of a type in the API. */
const maxTypeCharacters = 316;
const maxReasonCharacters = 1_024;
const maxMessageCharacters = 32_768;

/** An API server accepts only RFC 3339 times. */
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Keeps conditions of other writers, and own ones about a newer generation.
 *
 * @param currentConditions possibly invalid
 * @param ownConditions at most one per type
 * @param obsoleteTypes own types to remove
 * @returns `currentConditions` itself if nothing changed
 */
export function withConditions(
  currentConditions: unknown,
  ownConditions: readonly DesiredCondition[],
  conditionMoment: ConditionMoment,
  obsoleteTypes: readonly string[] = [],
): readonly unknown[] {
  const remainingConditions = new Map(ownConditions.map((condition) => [typeOf(condition), condition]));
  const ownTypes = new Set([...remainingConditions.keys(), ...obsoleteTypes]);
  const presentList: readonly unknown[] = Array.isArray(currentConditions) ? currentConditions : [];
  const nextConditions: unknown[] = [];
  for (const presentCondition of presentList) {
    const type =
      isObject(presentCondition) && typeof presentCondition.type === 'string' ? presentCondition.type : undefined;
    const isOwnCondition = type !== undefined && ownTypes.has(type);
    const desiredCondition = isOwnCondition ? remainingConditions.get(type) : undefined;
    // Removes obsolete conditions and duplicates of a type.
    if (isOwnCondition && desiredCondition === undefined) continue;
    nextConditions.push(
      desiredCondition === undefined
        ? presentCondition
        : conditionAfter(presentCondition as Fields, desiredCondition, conditionMoment),
    );
    if (isOwnCondition) remainingConditions.delete(type);
  }
  for (const desiredCondition of remainingConditions.values())
    nextConditions.push(conditionAfter({}, desiredCondition, conditionMoment));
  return Array.isArray(currentConditions) && isDeepStrictEqual(currentConditions, nextConditions)
    ? currentConditions
    : nextConditions;
}

export function isObservedLater(value: unknown, generation: number | undefined): boolean {
  if (generation === undefined || !isObject(value)) return false;
  const observedGeneration = observedGenerationOf(value);
  return observedGeneration !== undefined && observedGeneration > generation;
}

type Fields = Readonly<Record<string, unknown>>;

function conditionAfter(
  presentFields: Fields,
  desiredCondition: DesiredCondition,
  { generation, time }: ConditionMoment,
): Fields {
  if (isObservedLater(presentFields, generation)) return presentFields;
  const { lastTransitionTime: transitionTime } = presentFields;
  const isUnchanged =
    presentFields.status === desiredCondition.status &&
    typeof transitionTime === 'string' &&
    timeText.test(transitionTime);
  return {
    type: typeOf(desiredCondition),
    status: desiredCondition.status,
    reason: reasonOf(desiredCondition.reason),
    message: messageOf(desiredCondition.message),
    lastTransitionTime: isUnchanged ? transitionTime : time,
    ...(generation !== undefined && {
      observedGeneration: keepGenerationType(presentFields.observedGeneration, generation),
    }),
  };
}

/** Istio's resources allow the generation as text. */
function keepGenerationType(presentGeneration: unknown, generation: number): unknown {
  return presentGeneration === String(generation) ? presentGeneration : generation;
}

function observedGenerationOf({ observedGeneration: value }: Fields): number | undefined {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

function typeOf({ type }: DesiredCondition): string {
  return type.slice(0, maxTypeCharacters);
}

function reasonOf(text: string): string {
  const sanitizedReason = text
    .replaceAll(/[^A-Za-z0-9_,:]/g, '')
    .replace(/^[^A-Za-z]+/, '')
    .slice(0, maxReasonCharacters)
    .replace(/[,:]+$/, '');
  return sanitizedReason === '' ? 'Unknown' : sanitizedReason;
}

/** Escapes the text into one line, because it can quote an object or a proxy and is printed in terminals. */
function messageOf(text: string): string {
  return visibleLine(text, maxMessageCharacters);
}

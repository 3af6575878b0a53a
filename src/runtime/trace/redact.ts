/** Prepares data for a trace: without secrets, and with bounded texts and lists. */

import { cachedFunction } from '../cached-function.ts';
import { copiedText } from '../copied-text.ts';
import { isSecretName, patternOfSecrets, redacted, redactSuspiciousText } from './secret-texts.ts';
import type { TraceRecord } from './trace.ts';

export interface RedactOptions {
  /** A replay needs long texts and long lists. Secrets are removed regardless. */
  readonly full?: boolean;
  /** Texts that must never be written: passwords and tokens from the environment. */
  readonly secrets?: readonly string[];
}

const maxTextLength = 2_000;
const maxListLength = 16;
const maxDepth = 12;
export const tooDeepMarker = '[deep]';
/** Smaller numbers are counters, such as tokens of a bucket and attempts. */
const minSecretNumber = 100_000;
const maxCachedLength = 80;

interface Key {
  readonly text: string;
  readonly isSecret: boolean;
}

/** An unchanged value is returned itself. */
export type Redact = <T>(value: T) => T;

export function createRedactor(options: RedactOptions = {}): Redact {
  const walk = redactingWalkOf(options);
  return <T>(value: T): T => walk(value, false, 0) as T;
}

type Walk = (value: unknown, isSecret: boolean, depth: number) => unknown;

function redactingWalkOf({ full = false, secrets = [] }: RedactOptions): Walk {
  const secretPattern = patternOfSecrets(secrets);
  const redactText = (text: string): string =>
    redactSuspiciousText(secretPattern === undefined ? text : text.replace(secretPattern, redacted));
  const redactShortText = cachedFunction(redactText);
  const keyOf = cachedFunction((name): Key => ({ text: redactText(name), isSecret: isSecretName(name) }));

  const isSecretWord = (name: string): boolean =>
    name.length <= maxCachedLength ? keyOf(name).isSecret : isSecretName(name);

  const hasSecretPart = (path: string): boolean => path.split('/').some(isSecretWord);
  const hasSecretPartShort = cachedFunction(hasSecretPart);
  const isSecretPath = (path: string): boolean =>
    path.length <= maxCachedLength ? hasSecretPartShort(path) : hasSecretPart(path);

  const isSecretFlag = (item: unknown): boolean => isFlag(item) && isSecretWord(item);

  const text = (value: string, isSecret: boolean): string => {
    if (isSecret && value !== '') return redacted;
    const safeText = value.length <= maxCachedLength ? redactShortText(value) : redactText(value);
    if (full || safeText.length <= maxTextLength) return safeText;
    return `${copiedText(safeText.slice(0, maxTextLength))}… (${safeText.length} characters)`;
  };

  const redactList = (value: readonly unknown[], isSecret: boolean, depth: number): unknown => {
    const keptItems = full || value.length <= maxListLength ? value : value.slice(0, maxListLength);
    const isSecretBelow = isSecret || isSecretPair(value);
    let hasChanged = keptItems !== value;
    const items = keptItems.map((item, index) => {
      const isFlagValue = index > 0 && !isFlag(item) && isSecretFlag(keptItems[index - 1]);
      const safeItem = walk(item, isFlagValue || (isSecretBelow && !(index === 0 && !isSecret)), depth);
      hasChanged ||= safeItem !== item;
      return safeItem;
    });
    if (keptItems !== value) items.push(`… (${value.length} items)`);
    return hasChanged ? items : value;
  };

  const record = (value: object, isSecret: boolean, depth: number): unknown => {
    const namesSecret = !isSecret && isSecretNamed(value, isSecretWord, isSecretPath);
    const fields = value as Record<string, unknown>;
    let copy: Record<string, unknown> | undefined;
    for (const name of Object.keys(value)) {
      const item = fields[name];
      const key = keyOf(name);
      const safeItem = walk(item, isSecret || key.isSecret || (namesSecret && name === 'value'), depth);
      if (safeItem === item && key.text === name) continue;
      copy ??= { ...value };
      if (key.text !== name) delete copy[name];
      copy[key.text] = safeItem;
    }
    return copy ?? value;
  };

  const walk: Walk = (value, isSecret, depth) => {
    switch (typeof value) {
      case 'string':
        return text(value, isSecret);
      case 'number':
        return isSecret && Math.abs(value) >= minSecretNumber ? redacted : value;
      case 'bigint':
        return text(String(value), isSecret);
      case 'function':
        // JSON omits functions; a `toJSON` method would return data that was not checked.
        return undefined;
      case 'object':
        return value === null ? null : redactObject(value, isSecret, depth);
      default:
        return value;
    }
  };

  const redactObject = (value: object, isSecret: boolean, depth: number): unknown => {
    if (depth >= maxDepth) return tooDeepMarker;
    if (Array.isArray(value)) return redactList(value, isSecret, depth + 1);
    if (value instanceof Error) return text(value.message, isSecret);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return record(value, isSecret, depth + 1);
    // Charts contain plain data. Other values of a foreign machine are named, not traversed.
    const { constructor } = value as { constructor?: { name?: string } };
    return `[${constructor?.name || 'object'}]`;
  };
  return walk;
}

/** A record's own lists are not truncated, because a state can be restored only from all changes; their contents are redacted like any other data. */
export function recordRedactor(options: RedactOptions = {}): (record: TraceRecord) => TraceRecord {
  const walk = redactingWalkOf(options);
  // The field names of a record are fixed, so only their contents are checked. Most records are safe and are not
  // copied.
  return (record) => {
    let safeRecord: Record<string, unknown> | undefined;
    for (const [name, value] of Object.entries(record)) {
      if (typeof value === 'number' || name === 'taken') continue;
      const safeValue = name === 'change' ? redactItems(value as readonly object[], walk) : walk(value, false, 1);
      if (safeValue === value) continue;
      safeRecord ??= { ...record };
      safeRecord[name] = safeValue;
    }
    return (safeRecord as TraceRecord | undefined) ?? record;
  };
}

/** Returns the list itself if nothing in it changes. */
function redactItems(list: readonly object[], walk: Walk): readonly unknown[] {
  const safeItems = list.map((item) => walk(item, false, 0));
  return safeItems.every((item, index) => item === list[index]) ? list : safeItems;
}

/** Another field, such as the path of a context change, may name the secret. */
function isSecretNamed(
  fields: object,
  isSecretWord: (word: string) => boolean,
  isSecretPath: (path: string) => boolean,
): boolean {
  const { path, name, key } = fields as { path?: unknown; name?: unknown; key?: unknown };
  if (typeof path === 'string' && isSecretPath(path)) return true;
  return (typeof name === 'string' && isSecretWord(name)) || (typeof key === 'string' && isSecretWord(key));
}

/** `['--token', '…']`, as in lists of arguments. */
function isFlag(item: unknown): item is string {
  return typeof item === 'string' && /^--?[A-Za-z][\w.-]{0,78}$/.test(item);
}

/** `['authorization', 'Basic …']`, as in lists of headers and variables. */
function isSecretPair(list: readonly unknown[]): boolean {
  const [name] = list;
  return (
    list.length === 2 && typeof name === 'string' && /^[a-z-]{1,80}$|^[A-Z_\d]{1,80}$/.test(name) && isSecretName(name)
  );
}

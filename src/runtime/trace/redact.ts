/** Makes what goes into a trace safe and small: no secret, no endless text, no endless list. */
import { copiedText } from '../copied-text.ts';
import { isSecretName, patternOfSecrets, redacted, withoutSecretLooks } from './secret-texts.ts';
import type { TraceRecord } from './trace.ts';

export interface RedactOptions {
  /** Keep long texts and long lists: a replay needs all of them. Secrets are left out all the same. */
  readonly full?: boolean;
  /** Texts that must not be written wherever they turn up: passwords and tokens that the environment holds. */
  readonly secrets?: readonly string[];
}

const longestText = 2_000;
const longestList = 16;
const deepest = 12;
/** Stands where data went on deeper than that. */
export const tooDeep = '[deep]';
/** Numbers with fewer digits count something: tokens of a bucket, attempts. */
const shortestSecretNumber = 100_000;
/** Names of actors, states and fields come again and again: what became of them is remembered. */
const longestRemembered = 80;
const maxRemembered = 4_096;

/** What is known of a field's name. */
interface Key {
  readonly text: string;
  /** Whether everything below it is secret. */
  readonly isSecret: boolean;
}

/** Redacts a value without changing it; what is unchanged is returned as it is. */
export type Redact = <T>(value: T) => T;

/** A function that leaves out of any plain data what must not be in a trace. */
export function redactor({ full = false, secrets = [] }: RedactOptions = {}): Redact {
  const known = patternOfSecrets(secrets);
  const safe = (text: string): string => withoutSecretLooks(known === undefined ? text : text.replace(known, redacted));
  const safeShort = remembering(safe);
  const keyOf = remembering((name): Key => ({ text: safe(name), isSecret: isSecretName(name) }));

  const isSecretWord = (word: string): boolean =>
    word.length <= longestRemembered ? keyOf(word).isSecret : isSecretName(word);

  const isSecretFlag = (item: unknown): boolean => isFlag(item) && isSecretWord(item);

  const text = (value: string, isSecret: boolean): string => {
    if (isSecret && value !== '') return redacted;
    const whole = value.length <= longestRemembered ? safeShort(value) : safe(value);
    if (full || whole.length <= longestText) return whole;
    return `${copiedText(whole.slice(0, longestText))}… (${whole.length} characters)`;
  };

  const list = (value: readonly unknown[], isSecret: boolean, depth: number): unknown => {
    const kept = full || value.length <= longestList ? value : value.slice(0, longestList);
    const below = isSecret || isSecretPair(value);
    let changed = kept !== value;
    const items = kept.map((item, index) => {
      const ofFlag = index > 0 && !isFlag(item) && isSecretFlag(kept[index - 1]);
      const safeItem = walk(item, ofFlag || (below && !(index === 0 && !isSecret)), depth);
      changed ||= safeItem !== item;
      return safeItem;
    });
    if (kept !== value) items.push(`… (${value.length} items)`);
    return changed ? items : value;
  };

  const record = (value: object, isSecret: boolean, depth: number): unknown => {
    const namesSecret = !isSecret && isSecretNamed(value, isSecretWord);
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

  const walk = (value: unknown, isSecret: boolean, depth: number): unknown => {
    switch (typeof value) {
      case 'string':
        return text(value, isSecret);
      case 'number':
        return isSecret && Math.abs(value) >= shortestSecretNumber ? redacted : value;
      case 'bigint':
        return text(String(value), isSecret);
      case 'function':
        // JSON leaves it out; a toJSON would speak for what was looked at.
        return undefined;
      case 'object':
        return value === null ? null : object(value, isSecret, depth);
      default:
        return value;
    }
  };

  const object = (value: object, isSecret: boolean, depth: number): unknown => {
    if (depth >= deepest) return tooDeep;
    if (Array.isArray(value)) return list(value, isSecret, depth + 1);
    if (value instanceof Error) return text(value.message, isSecret);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return record(value, isSecret, depth + 1);
    // Charts hold plain data. What a foreign machine holds beside it is named, not walked through.
    const { constructor } = value as { constructor?: { name?: string } };
    return `[${constructor?.name || 'object'}]`;
  };
  return <T>(value: T): T => walk(value, false, 0) as T;
}

/**
 * As {@link redactor}, for records of a trace. A record's own lists stay whole, for a state is known by all changes or by
 * none; what is in them is data like any other.
 */
export function recordRedactor(options: RedactOptions = {}): (record: TraceRecord) => TraceRecord {
  const redact = redactor(options);
  return (record) => {
    if (record.kind !== 'step' && record.kind !== 'transition') return redact(record);
    const { taken, change, ...rest } = record;
    return {
      ...redact(rest),
      ...(taken !== undefined && { taken }),
      ...(change !== undefined && { change: change.map(redact) }),
    };
  };
}

/** A function of a text that is computed once for each, while there are not too many. */
function remembering<Result>(compute: (text: string) => Result): (text: string) => Result {
  const results = new Map<string, Result>();
  return (text) => {
    const remembered = results.get(text);
    if (remembered !== undefined) return remembered;
    if (results.size >= maxRemembered) results.clear();
    const result = compute(text);
    results.set(text, result);
    return result;
  };
}

/** Whether `value` holds what another field names: of a context's change or of an environment variable. */
function isSecretNamed(fields: object, isSecretWord: (word: string) => boolean): boolean {
  const { path, name, key } = fields as { path?: unknown; name?: unknown; key?: unknown };
  if (typeof path === 'string' && path.split('/').some(isSecretWord)) return true;
  return (typeof name === 'string' && isSecretWord(name)) || (typeof key === 'string' && isSecretWord(key));
}

/** `['--token', '…']`, as lists of arguments have them. */
function isFlag(item: unknown): item is string {
  return typeof item === 'string' && /^--?[A-Za-z][\w.-]{0,78}$/.test(item);
}

/** `['authorization', 'Basic …']`, as lists of headers and variables have them. */
function isSecretPair(list: readonly unknown[]): boolean {
  const [name] = list;
  return (
    list.length === 2 && typeof name === 'string' && /^[a-z-]{1,80}$|^[A-Z_\d]{1,80}$/.test(name) && isSecretName(name)
  );
}

/** Makes what goes into a trace safe and small: no secret, no endless text, no endless list. */

export interface RedactOptions {
  /** Keep long texts and long lists: a replay needs all of them. Secrets are left out all the same. */
  readonly full?: boolean;
  /** Texts that must not be written wherever they turn up: passwords and tokens that the environment holds. */
  readonly secrets?: readonly string[];
}

const secretKey = /passw|secret|token|private.?key|authorization|credential|api.?key/i;
const longestText = 2_000;
const longestList = 16;
const deepest = 12;
const redacted = '[redacted]';

/** What secrets look like inside a text, each with what is kept of it. */
const secretPatterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*-----|$)/g, redacted],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, redacted],
  [
    /\b([\w.-]*(?:passw(?:or)?d|secret|token|api[-_]?key)[\w.-]*["']?\s*[:=]\s*["']?)[^\s"',;&}]{4,}/gi,
    `$1${redacted}`,
  ],
];
/** Most texts hold none of the words that the patterns begin with: one look is enough for them. */
const suspicious = /-----BEGIN|bearer|basic|eyJ|passw|secret|token|api[-_]?key/i;
const shortestSecret = 6;

/** Redacts a value; what is unchanged is returned as it is. */
export type Redact = <T>(value: T) => T;

/** A function that leaves out of any plain data what must not be in a trace. */
export function redactor({ full = false, secrets = [] }: RedactOptions = {}): Redact {
  const known = secrets.filter((secret) => secret.length >= shortestSecret).sort((a, b) => b.length - a.length);

  const text = (key: string, value: string): string => {
    if (value !== '' && secretKey.test(key)) return redacted;
    let safe = value;
    for (const secret of known) if (safe.includes(secret)) safe = safe.replaceAll(secret, redacted);
    if (suspicious.test(safe)) for (const [pattern, kept] of secretPatterns) safe = safe.replaceAll(pattern, kept);
    return full || safe.length <= longestText ? safe : `${safe.slice(0, longestText)}… (${safe.length} characters)`;
  };

  const list = (key: string, value: readonly unknown[], depth: number): unknown => {
    const kept = full || value.length <= longestList ? value : value.slice(0, longestList);
    let changed = kept !== value;
    const items = kept.map((item) => {
      const safe = walk(key, item, depth);
      changed ||= safe !== item;
      return safe;
    });
    if (kept !== value) items.push(`… (${value.length} items)`);
    return changed ? items : value;
  };

  const record = (value: object, depth: number): unknown => {
    let copy: Record<string, unknown> | undefined;
    for (const [key, item] of Object.entries(value)) {
      const safe = walk(key, item, depth);
      if (safe === item) continue;
      copy ??= { ...value };
      copy[key] = safe;
    }
    return copy ?? value;
  };

  const walk = (key: string, value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return text(key, value);
    if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
    if (depth >= deepest) return '[deep]';
    if (Array.isArray(value)) return list(key, value, depth + 1);
    if (value instanceof Error) return text(key, value.message);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return record(value, depth + 1);
    // Charts hold plain data. What a foreign machine holds beside it is named, not walked through.
    const { constructor } = value as { constructor?: { name?: string } };
    return `[${constructor?.name || 'object'}]`;
  };
  return <T>(value: T): T => walk('', value, 0) as T;
}

/** The values of environment variables whose names say that they are secret. */
export function secretsIn(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => (value !== undefined && secretKey.test(name) ? [value] : []));
}

/** Reads environment variables. Replaces an invalid value by its default, with a warning. Treats an empty value as unset. */
import { durationMsOf, maxTimerMs } from '../model/fields/duration.ts';
import type { LogWarning } from '../runtime/log-events/log-events.ts';

/** Maximum of 100 years, because certificates that expire after the year 9999 cannot be encoded. */
const maxDurationMs = 876_000 * 3_600_000;

interface ParsedVariable<T> {
  readonly value: T | undefined;
  readonly defaultValue: T;
  readonly format: string;
  readonly shownDefault?: string;
}

export class Environment {
  readonly #env: NodeJS.ProcessEnv;
  readonly #warn: (warning: LogWarning) => void;

  constructor(env: NodeJS.ProcessEnv, warn: (warning: LogWarning) => void) {
    this.#env = env;
    this.#warn = warn;
  }

  hasValue(name: string): boolean {
    return (this.#env[name] ?? '') !== '';
  }

  text(name: string, defaultValue: string): string {
    return this.#env[name] || defaultValue;
  }

  list(name: string): string[] {
    return listOf(this.#env[name] ?? '');
  }

  durationMs(name: string, defaultValue: number): number {
    return this.#duration(name, defaultValue, maxDurationMs);
  }

  /** At most {@link maxTimerMs}. */
  timerMs(name: string, defaultValue: number): number {
    return this.#duration(name, defaultValue, maxTimerMs);
  }

  #duration(name: string, defaultValue: number, maxMs: number): number {
    const parsedMs = durationMsOf(this.#env[name] ?? '');
    const value = parsedMs !== undefined && parsedMs >= 0 ? parsedMs : undefined;
    const expectedFormat = 'a duration such as 300ms, 30s or 1h30m';
    const ms = this.#valueOrDefault(name, {
      value,
      defaultValue,
      format: expectedFormat,
      shownDefault: `${defaultValue}ms`,
    });
    if (ms <= maxMs) return ms;
    this.#warn({ event: 'option.capped', setting: name, value: this.#env[name], max: `${maxMs / 3_600_000}h` });
    return maxMs;
  }

  /** The value is an integer. */
  number(name: string, defaultValue: number, minValue = 0): number {
    const value = Number(this.#env[name]);
    const isAllowed = Number.isSafeInteger(value) && value >= minValue;
    return this.#valueOrDefault(name, {
      value: isAllowed ? value : undefined,
      defaultValue,
      format: `an integer >= ${minValue}`,
    });
  }

  percent(name: string, defaultValue: number): number {
    const value = Number(this.#env[name]);
    const isAllowed = value >= 0 && value <= 100;
    return this.#valueOrDefault(name, {
      value: isAllowed ? value : undefined,
      defaultValue,
      format: 'a number from 0 to 100',
    });
  }

  /** A boolean in Go's notation: `1`, `t`, `true` and `0`, `f`, `false`. */
  boolean(name: string, defaultValue: boolean): boolean {
    return this.#valueOrDefault(name, {
      value: booleanOf(this.#env[name] ?? ''),
      defaultValue,
      format: 'true or false',
    });
  }

  #valueOrDefault<T>(
    name: string,
    { value, defaultValue, format, shownDefault = String(defaultValue) }: ParsedVariable<T>,
  ): T {
    if (!this.hasValue(name)) return defaultValue;
    if (value === undefined) {
      const reason = `must be ${format}`;
      this.#warn({ event: 'option.defaulted', setting: name, value: this.#env[name], default: shownDefault, reason });
    }
    return value ?? defaultValue;
  }
}

export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);
}

export function booleanOf(text: string): boolean | undefined {
  if (/^(1|t|true)$/i.test(text)) return true;
  return /^(0|f|false)$/i.test(text) ? false : undefined;
}

/** Setting one of these variables of Istio is reported. */
export const variablesWithoutEffect: readonly string[] = [
  ...['PILOT_XDS_SEND_TIMEOUT', 'V2_REFRESH', 'PILOT_PUSH_BURST'],
  ...['PILOT_CERT_PROVIDER', 'TOKEN_ISSUER', 'AUDIENCE'],
  ...['JWT_POLICY', 'CA_TRUSTED_NODE_ACCOUNTS', 'ISTIO_MULTIROOT_MESH'],
  ...['PILOT_ENABLE_STATUS', 'PILOT_ENABLE_ANALYSIS', 'ISTIO_WATCH_NAMESPACE'],
  ...['ENABLE_LEADER_ELECTION', 'EXTERNAL_ISTIOD', 'INJECTION_WEBHOOK_CONFIG_NAME', 'VALIDATION_WEBHOOK_CONFIG_NAME'],
  ...['LOCAL_CLUSTER_SECRET_WATCHER', 'PILOT_MULTICLUSTER_KUBECONFIG_PATH'],
  ...['PILOT_JWT_ENABLE_REMOTE_JWKS', 'PILOT_ENABLE_GATEWAY_API'],
];

/**
 * Variables of the environment (spec/discovery.md §1.4). One that makes no sense has its default, with a warning; an empty
 * one counts as unset.
 */
import { durationMsOf, longestTimerMs } from '../model/fields/duration.ts';
import type { LogWarning } from '../runtime/log-events/log-events.ts';

export class Environment {
  readonly #env: NodeJS.ProcessEnv;
  readonly #warn: (warning: LogWarning) => void;

  constructor(env: NodeJS.ProcessEnv, warn: (warning: LogWarning) => void) {
    this.#env = env;
    this.#warn = warn;
  }

  isSet(name: string): boolean {
    return (this.#env[name] ?? '') !== '';
  }

  text(name: string, byDefault: string): string {
    return this.#env[name] || byDefault;
  }

  /** `a,b, c`. */
  list(name: string): string[] {
    return listOf(this.#env[name] ?? '');
  }

  durationMs(name: string, byDefault: number): number {
    const ms = durationMsOf(this.#env[name] ?? '');
    return this.#orDefault(name, ms !== undefined && ms >= 0 ? ms : undefined, byDefault, `${byDefault}ms`);
  }

  /** What something waits for: no timer is longer than {@link longestTimerMs}. */
  timerMs(name: string, byDefault: number): number {
    const ms = this.durationMs(name, byDefault);
    if (ms <= longestTimerMs) return ms;
    this.#warn({
      event: 'option.capped',
      setting: name,
      value: this.#env[name],
      max: `${longestTimerMs / 3_600_000}h`,
    });
    return longestTimerMs;
  }

  /** A whole number, not negative. */
  number(name: string, byDefault: number, least = 0): number {
    const value = Number(this.#env[name]);
    return this.#orDefault(name, Number.isSafeInteger(value) && value >= least ? value : undefined, byDefault);
  }

  /** A number from 0 to 100. */
  percent(name: string, byDefault: number): number {
    const value = Number(this.#env[name]);
    return this.#orDefault(name, value >= 0 && value <= 100 ? value : undefined, byDefault);
  }

  /** A boolean as Go reads it: `1`, `t`, `true` and `0`, `f`, `false`. */
  boolean(name: string, byDefault: boolean): boolean {
    return this.#orDefault(name, booleanOf(this.#env[name] ?? ''), byDefault);
  }

  #orDefault<T>(name: string, value: T | undefined, byDefault: T, shown = String(byDefault)): T {
    if (!this.isSet(name)) return byDefault;
    if (value === undefined) {
      this.#warn({ event: 'option.defaulted', setting: name, value: this.#env[name], default: shown });
    }
    return value ?? byDefault;
  }
}

/** The items of a comma list, without blanks around them and without empty ones. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);
}

export function booleanOf(text: string): boolean | undefined {
  if (/^(1|t|true)$/i.test(text)) return true;
  return /^(0|f|false)$/i.test(text) ? false : undefined;
}

/** What the reference reads and this program does not, or not yet: whoever sets one should hear of it. */
export const variablesWithoutEffect: readonly string[] = [
  ...['PILOT_XDS_SEND_TIMEOUT', 'V2_REFRESH', 'PILOT_PUSH_BURST'],
  ...['PILOT_CERT_PROVIDER', 'TOKEN_ISSUER', 'AUDIENCE'],
  ...['JWT_POLICY', 'CA_TRUSTED_NODE_ACCOUNTS', 'ISTIO_MULTIROOT_MESH'],
  ...['PILOT_ENABLE_STATUS', 'PILOT_ENABLE_ANALYSIS', 'ISTIO_WATCH_NAMESPACE'],
  ...['ENABLE_LEADER_ELECTION', 'EXTERNAL_ISTIOD', 'INJECTION_WEBHOOK_CONFIG_NAME', 'VALIDATION_WEBHOOK_CONFIG_NAME'],
  ...['LOCAL_CLUSTER_SECRET_WATCHER', 'PILOT_MULTICLUSTER_KUBECONFIG_PATH'],
  ...['PILOT_JWT_ENABLE_REMOTE_JWKS', 'PILOT_ENABLE_GATEWAY_API', 'DNS_ADDR'],
];

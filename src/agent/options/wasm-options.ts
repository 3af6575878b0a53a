import { defaultFetchLimits, type FetchLimits } from '../../../machines/agent/wasm/wasm-module.machine.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

export interface WasmOptions {
  readonly limits: FetchLimits;
  /** Modules that were not used for this time are removed. */
  readonly moduleExpiryMs: number;
  /** `host` or `host:port`, or `*` for all. Certificates are not verified, and plaintext is allowed. */
  readonly insecureRegistries: ReadonlySet<string>;
  /** Folder with `config.json` for images without a pull secret; empty if none. */
  readonly dockerConfig: string;
}

const dayMs = 24 * 60 * 60 * 1_000;
const attemptMs = { min: 1_000, max: 10 * 60 * 1_000 };
const expiryMs = { min: 60_000, max: 365 * dayMs };
const maxAttempts = 100;

export function wasmOptions(env: NodeJS.ProcessEnv, warnings: LogWarning[]): WasmOptions {
  const readOption = <T>(
    setting: string,
    fallback: T,
    shownValue: string,
    reason: string,
    parse: (text: string) => T | undefined,
  ) => {
    const value = env[setting];
    if (!value) return fallback;
    const parsedValue = parse(value);
    if (parsedValue === undefined)
      warnings.push({ event: 'option.defaulted', setting, value, default: shownValue, reason });
    return parsedValue ?? fallback;
  };
  const isInRange =
    ({ min, max }: { min: number; max: number }) =>
    (text: string) => {
      const ms = durationMsOf(text);
      return ms !== undefined && ms >= min && ms <= max ? ms : undefined;
    };
  const attempts = (text: string) => {
    const value = Number(text);
    return Number.isInteger(value) && value >= 1 && value <= maxAttempts ? value : undefined;
  };
  const { attemptMs: limitMs, quickAttempts } = defaultFetchLimits;
  return {
    limits: {
      attemptMs: readOption(
        'WASM_HTTP_REQUEST_TIMEOUT',
        limitMs,
        '30s',
        'must be from 1s to 10m',
        isInRange(attemptMs),
      ),
      quickAttempts: readOption(
        ...(['WASM_HTTP_REQUEST_MAX_RETRIES', quickAttempts, String(quickAttempts)] as const),
        `must be an integer from 1 to ${maxAttempts}`,
        attempts,
      ),
    },
    moduleExpiryMs: readOption('WASM_MODULE_EXPIRY', dayMs, '24h', 'must be from 1m to 8760h', isInRange(expiryMs)),
    insecureRegistries: new Set(
      (env.WASM_INSECURE_REGISTRIES ?? '')
        .split(',')
        .map((item) => item.trim().toLowerCase())
        .filter(Boolean),
    ),
    dockerConfig: env.DOCKER_CONFIG ?? '',
  };
}

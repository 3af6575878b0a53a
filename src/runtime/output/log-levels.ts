/** Levels with the names of Istio's programs, in ascending order of verbosity. */
export const logLevels = ['none', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

export function isLogLevel(text: unknown): text is LogLevel {
  return (logLevels as readonly unknown[]).includes(text);
}

export function includesLevel(limit: LogLevel, level: LogLevel): boolean {
  return logLevels.indexOf(level) <= logLevels.indexOf(limit);
}

/** Throws a plain Error that names the invalid item. */
export function parseLogLevels(spec: string): Map<string, LogLevel> {
  const levels = new Map<string, LogLevel>();
  for (const item of spec.split(',').filter(Boolean)) {
    const [scope, level] = item.includes(':') ? item.split(':', 2) : ['default', item];
    if (!isLogLevel(level)) {
      throw new Error(
        `must be a list of [SCOPE:]LEVEL with LEVEL one of ${logLevels.join(', ')}, got ${JSON.stringify(item)}`,
      );
    }
    levels.set(scope!, level);
  }
  return levels;
}

export interface ScopeSettings {
  outputLevel: LogLevel;
  /** Lines of this level and more severe ones contain the stack. */
  stackTraceLevel: LogLevel;
  logCallers: boolean;
}

export interface InitialLevels {
  /** `level` for all scopes, or `scope:level,…` with `default` for the others (`--log_output_level`). */
  readonly outputLevel?: string;
  /** Scopes whose lines name the source line that wrote them, separated by commas; `all` (`--log_caller`). */
  readonly callers?: string;
  /** Same format as `outputLevel` (`--log_stacktrace_level`, default none). */
  readonly stackTraceLevel?: string;
}

export const maxProxyLevels = 50;

/**
 * All loggers of a scope share one record, so a change applies to the next line. Unlike a scope's level, a level of a proxy adds lines and removes
 * none: `web-0.shop` at `debug` is logged in detail while its scope stays at `info`.
 */
export class LogLevels {
  readonly #initial: (scope: string) => ScopeSettings;
  readonly #scopes = new Map<string, ScopeSettings>();
  /** By `NAME.NAMESPACE` of a proxy, then by scope. */
  readonly #proxies = new Map<string, Map<string, LogLevel>>();
  #allScopes: Partial<ScopeSettings> = {};

  /** Throws a plain Error that names the invalid item. */
  constructor({ outputLevel = 'default:info', callers = '', stackTraceLevel = '' }: InitialLevels = {}) {
    const outputLevels = parseLogLevels(outputLevel);
    const stackTraceLevels = parseLogLevels(stackTraceLevel);
    const namedScopes = new Set(callers.split(',').map((scope) => scope.trim()));
    this.#initial = (scope) => ({
      outputLevel: levelOfScope(outputLevels, scope) ?? 'info',
      stackTraceLevel: levelOfScope(stackTraceLevels, scope) ?? 'none',
      logCallers: namedScopes.has('all') || namedScopes.has('*') || namedScopes.has(scope),
    });
  }

  /** The record is updated when the settings change. */
  of(scope: string): Readonly<ScopeSettings> {
    return this.#recordOf(scope);
  }

  /** @param scope `all`: every scope */
  change(scope: string, change: Partial<ScopeSettings>): void {
    if (scope !== 'all') {
      Object.assign(this.#recordOf(scope), change);
      return;
    }
    this.#allScopes = { ...this.#allScopes, ...change };
    for (const settings of this.#scopes.values()) Object.assign(settings, change);
  }

  canChangeProxy(proxy: string): boolean {
    return this.#proxies.has(proxy) || this.#proxies.size < maxProxyLevels;
  }

  /** @param level `none` removes the level of the proxy */
  changeProxy(proxy: string, scope: string, level: LogLevel): void {
    const levels = this.#proxies.get(proxy) ?? new Map<string, LogLevel>();
    if (level === 'none') levels.delete(scope);
    else levels.set(scope, level);
    if (levels.size === 0) this.#proxies.delete(proxy);
    else if (this.canChangeProxy(proxy)) this.#proxies.set(proxy, levels);
  }

  proxiesOf(scope: string): ReadonlyMap<string, LogLevel> {
    const proxies = new Map<string, LogLevel>();
    for (const [proxy, levels] of this.#proxies) {
      const level = levels.get(scope);
      if (level !== undefined) proxies.set(proxy, level);
    }
    return proxies;
  }

  get hasProxies(): boolean {
    return this.#proxies.size > 0;
  }

  includesProxy(scope: string, level: LogLevel, proxy: string): boolean {
    const limit = this.#proxies.get(proxy)?.get(scope);
    return limit !== undefined && includesLevel(limit, level);
  }

  #recordOf(scope: string): ScopeSettings {
    let settings = this.#scopes.get(scope);
    if (settings === undefined) {
      settings = { ...this.#initial(scope), ...this.#allScopes };
      this.#scopes.set(scope, settings);
    }
    return settings;
  }
}

function levelOfScope(levels: ReadonlyMap<string, LogLevel>, scope: string): LogLevel | undefined {
  return levels.get('all') ?? levels.get(scope) ?? levels.get('default');
}

/** Serves log levels at `/scopej`, with the API of Istio's ControlZ for `istioctl admin log`. `?proxyID` sets the level for one proxy. */
import { isObject } from '../../../runtime/json-object.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { isLogLevel, logLevels, maxProxyLevels, type ScopeSettings } from '../../../runtime/output/log-levels.ts';
import { allScopes, scopesOf } from '../../../runtime/output/log-scopes.ts';
import { type DebugAccess, permissionOf } from '../debug/debug-access.ts';
import { tokenRequired } from '../debug/debug-page.ts';
import type { HttpReply, HttpRequest } from '../http/http-server.ts';

export interface LogLevelSources {
  readonly log: Logger;
  /** `PILOT_LOG_LEVELS_FROM_LOCALHOST`: local callers need no token to change levels. */
  readonly localMayChange: boolean;
}

const basePath = '/scopej';
const maxBodyBytes = 4_096;
/** Maximum length of two Kubernetes names. */
const maxNameLength = 507;
const scopesOfProxies = ['ads'];

/** `undefined` for paths other than `/scopej`. */
export async function respondToLogLevels(
  sources: LogLevelSources,
  access: DebugAccess,
  request: HttpRequest,
): Promise<HttpReply | undefined> {
  const { path, method } = request;
  if (path !== basePath && !path.startsWith(`${basePath}/`)) return undefined;
  const permissionResult = await permissionOf(access, request);
  if ('refusal' in permissionResult) return permissionResult.refusal;
  if (permissionResult.permission.onlyNamespace !== undefined) {
    return {
      status: 403,
      body: `forbidden: workloads of namespace ${permissionResult.permission.onlyNamespace} may not see log levels\n`,
    };
  }
  // Names such as `discovery/http` contain slashes.
  const scope = path.slice(basePath.length).replace(/^\/|\/$/g, '');
  const scopes = scopesOf('pilot-discovery');
  if (method === 'GET' || method === 'HEAD') {
    if (scope === '')
      return {
        status: 200,
        body: scopes.map(([name, scopeDescription]) => describeScope(sources.log, name, scopeDescription)),
      };
    const matchingScope = scopes.find(([name]) => name === scope);
    return matchingScope === undefined
      ? unknownScope(scope)
      : { status: 200, body: describeScope(sources.log, ...matchingScope) };
  }
  if (method !== 'PUT' || scope === '') {
    return {
      status: 405,
      body: `method not allowed: GET ${basePath}, or PUT ${basePath}/SCOPE\n`,
      headers: { allow: 'GET, PUT' },
    };
  }
  if (permissionResult.caller === 'local user' && !sources.localMayChange) return tokenRequired;
  if (scope !== allScopes && !scopes.some(([name]) => name === scope)) return unknownScope(scope);
  return await change(sources.log, scope, request);
}

async function change(log: Logger, scope: string, { readBody, query }: HttpRequest): Promise<HttpReply> {
  const settings = settingsIn(await readBody(maxBodyBytes));
  if (typeof settings === 'string') return invalidReply(settings);
  const proxyID = query.get('proxyID');
  const proxy = proxyID?.split('~')[2] ?? proxyID;
  const failure = proxy === null ? undefined : proxyProblem(log, scope, proxy, settings);
  if (failure !== undefined) return failure;
  // Logged before the change, which may silence the log.
  log.info('log.levelChanged', { scope, ...settings, ...(proxy !== null && { proxy }) });
  if (proxy === null) log.levels.change(scope, settings);
  else log.levels.changeProxy(proxy, scope, settings.outputLevel!);
  return acceptedReply;
}

function proxyProblem(
  { levels }: Logger,
  scope: string,
  proxy: string,
  { outputLevel, ...otherSettings }: Partial<ScopeSettings>,
): HttpReply | undefined {
  if (!scopesOfProxies.includes(scope)) {
    const scopes = scopesOfProxies.join(', ');
    return invalidReply(
      `scope ${JSON.stringify(scope)} has no lines about single proxies; scopes that have: ${scopes}`,
    );
  }
  if (outputLevel === undefined || Object.keys(otherSettings).length > 0)
    return invalidReply('a proxy has only an output_level');
  if (!/^[^\s~]+\.[^\s~.]+$/.test(proxy) || proxy.length > maxNameLength) {
    return invalidReply(
      `proxyID must be NAME.NAMESPACE or a node ID, got ${JSON.stringify(proxy.slice(0, maxNameLength))}`,
    );
  }
  if (levels.canChangeProxy(proxy)) return undefined;
  const body = `${maxProxyLevels} proxies have levels already; set {"output_level": "none"} for one of them\n`;
  return { status: 409, body };
}

/** Same response as ControlZ. */
const acceptedReply: HttpReply = { status: 202, body: '' };

function invalidReply(reason: string): HttpReply {
  return { status: 400, body: `invalid request: ${reason}\n` };
}

function unknownScope(scope: string): HttpReply {
  const scopeNames = scopesOf('pilot-discovery').map(([name]) => name);
  return { status: 404, body: `unknown scope ${JSON.stringify(scope)}; scopes: ${scopeNames.join(', ')}\n` };
}

function describeScope({ levels }: Logger, name: string, description: string): object {
  const { outputLevel, stackTraceLevel, logCallers } = levels.of(name);
  const proxies = levels.proxiesOf(name);
  return {
    ...{ name, description, output_level: outputLevel, stack_trace_level: stackTraceLevel, log_callers: logCallers },
    ...(proxies.size > 0 && { proxies: Object.fromEntries(proxies) }),
  };
}

function settingsIn(body: string | undefined): Partial<ScopeSettings> | string {
  if (body === undefined) return `the body is incomplete or has more than ${maxBodyBytes} bytes`;
  const object = parseJson(body);
  if (!isObject(object)) return 'the body must be a JSON object such as {"output_level": "debug"}';
  const settings: Partial<ScopeSettings> = {};
  for (const [name, key] of [
    ['output_level', 'outputLevel'],
    ['stack_trace_level', 'stackTraceLevel'],
  ] as const) {
    const level = object[name];
    if (level === undefined) continue;
    if (!isLogLevel(level)) return `${name} must be one of ${logLevels.join(', ')}, got ${JSON.stringify(level)}`;
    settings[key] = level;
  }
  const { log_callers: callers } = object;
  if (callers !== undefined) {
    if (typeof callers !== 'boolean') return `log_callers must be true or false, got ${JSON.stringify(callers)}`;
    settings.logCallers = callers;
  }
  return Object.keys(settings).length > 0
    ? settings
    : 'the body has none of output_level, stack_trace_level and log_callers';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

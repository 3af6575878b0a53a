/** Error messages contain no part of a Docker configuration (`.dockerconfigjson`). */
import { isObject } from '../../../runtime/json-object.ts';
import { defaultRegistry } from './image-reference.ts';

export interface RegistryCredentials {
  readonly basic?: string;
  readonly bearer?: string;
}

/** Kubernetes limits a Secret to 1 MiB. */
const maxConfigLength = 1024 * 1024;
/** These are names of the same registry. */
const dockerHub: ReadonlySet<string> = new Set([defaultRegistry, 'docker.io', 'registry-1.docker.io']);

/**
 * @returns `undefined` if the configuration has no credentials of the registry
 * @throws Error if the text is not a Docker configuration
 */
export function credentialsFor(registry: string, dockerConfig: string): RegistryCredentials | undefined {
  const { auths } = parseConfig(dockerConfig);
  const matchingEntry = Object.entries(isObject(auths) ? auths : {}).find(([name]) =>
    isSameRegistry(hostOf(name), registry),
  );
  if (matchingEntry === undefined) return undefined;
  const entry = isObject(matchingEntry[1]) ? matchingEntry[1] : {};
  const text = (name: string): string => (typeof entry[name] === 'string' ? entry[name] : '');
  if (text('registrytoken') !== '') return { bearer: text('registrytoken') };
  if (text('username') !== '') return { basic: base64(`${text('username')}:${text('password')}`) };
  if (text('auth') !== '') return { basic: base64(Buffer.from(text('auth'), 'base64').toString()) };
  if (text('identitytoken') !== '') throw new Error('identity tokens are not supported: use a user name and password');
  return undefined;
}

function parseConfig(text: string): Readonly<Record<string, unknown>> {
  if (text.length > maxConfigLength) throw new Error(`pull secret is longer than ${maxConfigLength} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would contain a part of the secret.
  }
  if (!isObject(value)) throw new Error('pull secret must be a Docker configuration in JSON');
  return value;
}

/** Keys are hosts, or URLs such as `https://index.docker.io/v1/`. */
function hostOf(name: string): string {
  const hostAndPath = name.replace(/^https?:\/\//i, '');
  const slash = hostAndPath.indexOf('/');
  return (slash < 0 ? hostAndPath : hostAndPath.slice(0, slash)).toLowerCase();
}

function isSameRegistry(host: string, other: string): boolean {
  return host === other || (dockerHub.has(host) && dockerHub.has(other));
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Random field values, including odd ones. */
import type { Draw } from './draw.ts';

export const namespaces = ['shop', 'stage', 'istio-system'] as const;
export const hosts = ['cart.shop.test', 'pay.shop.test', 'ads.stage.test', '*.wild.test', 'api.wild.test'] as const;
export const subsets = ['v1', 'v2', 'canary'] as const;

/** Names and ports that objects of one mesh share, so that they refer to each other. */
export interface MeshVocabulary {
  readonly draw: Draw;
  /** Ports that gateways may bind. */
  readonly gatewayPorts: readonly number[];
  /** Ports that a sidecar may bind on loopback. */
  readonly servicePorts: readonly number[];
  /** PEM files of a certificate, its key and an authority. */
  readonly files: { readonly certificate: string; readonly key: string; readonly ca: string };
}

export const duration = (draw: Draw): string =>
  draw.pick(['1ms', '20ms', '0.5s', '1s', '1m30s', '2h', '1.5s', '100000s']);
export const percent = (draw: Draw): { value: number } => ({
  value: draw.pick([0, 0.0001, 0.1, 1, 33.3, 50, 99.9, 100]),
});
export const host = (draw: Draw): string =>
  draw.pick([
    ...hosts,
    'unknown.test',
    'cart',
    'cart.shop',
    '*',
    '*.test',
    'UPPER.shop.test',
    'x.y.z.wild.test',
    '10.1.1.1',
  ]);
const regexes = [
  '.*',
  '/.*',
  '/items/[0-9]+',
  '^/a$',
  '(?i)/Case',
  '[^/]+',
  'a|b',
  '\\d{2,4}',
  '/x(/.*)?',
  '.*\\.html',
];
const oddRegexes = [
  '\\p{Greek}+',
  '(?P<id>\\w+)',
  '/[[:alpha:]]+',
  'a{0,1000}',
  '\\Qa.b\\E',
  '(?s).*',
  '/\\x{2F}',
  '(?U)a+',
  '\\pN',
  '[^\\x00-\\x{10FFFF}]',
  '\\C',
  '(?i:x)y',
  '\\z',
  'x*?',
  // Some of these are rejected.
  '\\C+/',
  '(?<n>a)(?<n>b)',
  '[é-à]',
  'a{10000000000}',
  '(?:[a-z]{0,1000}/){2}',
  '[a-z]{1000}.{1000}[^/]{1000}',
  '\\x{100}',
  '(a)\\1',
  '[[:foo:]]',
  '\\p{Garay}',
  'a{1000}{2}',
];
export const regex = (draw: Draw): string => (draw.chance(0.7) ? draw.pick(regexes) : draw.pick(oddRegexes));
const texts = [
  'a',
  'yes',
  'x y',
  'ümlaut',
  '"quoted"',
  "it's",
  '%',
  '%%',
  '%START_TIME%',
  `long-${'x'.repeat(200)}`,
  '0',
  '*',
  'a,b',
  '$1',
  '\\1',
];
export const text = (draw: Draw): string => draw.pick(texts);
export const path = (draw: Draw): string =>
  draw.pick(['/', '/items', '/items/', '/a/b', '/UPPER', '/with%20space', '/ümlaut', '/q?x=1', '/a//b']);
export const headerName = (draw: Draw): string =>
  draw.pick(['x-user', 'X-Upper', 'cookie', 'user-agent', 'content-type', 'x-b3-traceid', 'x_under', 'grpc-timeout']);
export const cidr = (draw: Draw): string =>
  draw.pick([
    '10.0.0.0/8',
    '10.1.0.0/16',
    '10.1.1.1',
    '192.168.0.0/24',
    '0.0.0.0/0',
    '2001:db8::/32',
    '::1',
    '10.1.0.0/17',
  ]);
export const labels = (draw: Draw): Record<string, string> =>
  draw.pick<Record<string, string>>([
    { app: 'web' },
    { app: 'other' },
    { app: 'web', version: 'v1' },
    { version: 'v2' },
  ]);

export function stringMatch(draw: Draw, exact: (draw: Draw) => string = path): object {
  return draw.one<object>(
    () => ({ exact: exact(draw) }),
    () => ({ prefix: exact(draw) }),
    () => ({ regex: regex(draw) }),
  );
}

export function destination({ draw, servicePorts }: MeshVocabulary): object {
  const knownHosts = hosts.filter((name) => !name.startsWith('*'));
  return {
    host: draw.pick([...knownHosts, ...knownHosts, 'unknown.test', 'cart', 'cart.shop.svc.cluster.local']),
    ...draw.maybe('subset', 0.3, () => draw.pick(subsets)),
    ...draw.maybe('port', 0.5, () => ({ number: draw.pick(servicePorts) })),
  };
}

/** Destinations with weights if there are several. */
export function destinations(world: MeshVocabulary): object[] {
  const { draw } = world;
  const count = draw.pick([1, 1, 2, 3]);
  return Array.from({ length: count }, () => ({
    destination: destination(world),
    ...(count > 1 && { weight: draw.pick([0, 1, 10, 33, 50, 100, 1000]) }),
  }));
}

export interface WrittenObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: object;
}

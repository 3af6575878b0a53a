import { expect, test } from 'vitest';
import { parseProbes } from './application-probes.ts';

const statusPort = 15020;

function parsed(value: unknown) {
  return parseProbes(typeof value === 'string' ? value : JSON.stringify(value), statusPort);
}

function only(prober: unknown, path = '/app-health/web/livez') {
  const result = parsed({ [path]: prober });
  return 'mistake' in result ? result.mistake : result.probes.get(path);
}

test('§6.6: each kind of probe with its defaults', () => {
  expect(only({ httpGet: { port: 80 } })).toEqual({
    kind: 'http',
    scheme: 'http',
    port: 80,
    path: '/',
    headers: [],
    timeoutMs: 10_000,
  });
  expect(only({ tcpSocket: { port: 80 } })).toEqual({ kind: 'tcp', port: 80, timeoutMs: 1_000 });
  expect(only({ grpc: { port: 80 } })).toEqual({ kind: 'grpc', port: 80, service: '', timeoutMs: 1_000 });
  expect(only({ grpc: { port: 80, service: 'a.B' }, timeoutSeconds: 3 })).toMatchObject({
    service: 'a.B',
    timeoutMs: 3_000,
  });
});

test('§6.6: paths get their slash, what is no path character is escaped, and none names another host', () => {
  const path = (said: string) => (only({ httpGet: { port: 80, path: said } }) as { path: string }).path;
  expect(path('healthz')).toBe('/healthz');
  expect(path('/a b?q=1#x')).toBe('/a%20b?q=1');
  expect(path('//evil.example/x')).toBe('//evil.example/x');
  expect(path('@evil.example/x')).toBe('/@evil.example/x');
  expect(path('/a\r\nhost: b')).toBe('/ahost:%20b');
});

test('§6.6: all paths that may ask, and no other', () => {
  const probe = { tcpSocket: { port: 80 } };
  for (const path of [
    ...['livez', 'readyz', 'startupz'].map((name) => `/app-health/web/${name}`),
    ...['prestopz', 'poststartz'].map((name) => `/app-lifecycle/web/${name}`),
  ]) {
    expect(only(probe, path), path).toMatchObject({ port: 80 });
  }
  for (const path of ['/app-health/web/other', '/app-health//livez', '/app-health/a/b/livez', '/livez', '']) {
    expect(only(probe, path), path).toBe(`invalid path ${JSON.stringify(path)}`);
  }
});

test('§6.6: what is wrong is told with its place', () => {
  const http = (fields: object) => only({ httpGet: { port: 80, ...fields } });
  expect(parsed('{')).toEqual({ mistake: expect.stringMatching(/^failed to decode: /) });
  expect(parsed('')).toEqual({ mistake: expect.stringMatching(/^failed to decode: /) });
  for (const value of [null, [], 'true', 7]) {
    expect(parsed(JSON.stringify(value))).toEqual({ mistake: 'failed to decode: the value must be an object' });
  }
  expect(only(null)).toBe('failed to decode: /app-health/web/livez must be an object');
  expect(only({})).toMatch(/invalid prober type/);
  expect(only({ httpGet: null, tcpSocket: null })).toMatch(/invalid prober type/);
  expect(only({ httpGet: { port: 80 }, tcpSocket: { port: 80 } })).toMatch(/invalid prober type/);
  expect(only({ exec: { command: ['true'] } })).toMatch(/invalid prober type/);
  expect(http({ port: 'http' })).toBe('/app-health/web/livez: httpGet.port must be int type, not "http"');
  expect(http({ port: undefined })).toMatch(/must be int type/);
  expect(http({ port: 0 })).toMatch(/port must be a port, not 0/);
  expect(http({ port: 65_536 })).toMatch(/port must be a port/);
  expect(http({ scheme: 'ftp' })).toMatch(/scheme must be HTTP or HTTPS, not "ftp"/);
  expect(http({ path: 7 })).toMatch(/path must be a text/);
  expect(http({ httpHeaders: {} })).toMatch(/httpHeaders must be a list/);
  expect(http({ httpHeaders: [{ name: 'a b', value: 'c' }] })).toMatch(/httpHeaders\[0\]: .*a b/);
  expect(http({ httpHeaders: [{ name: 'a', value: 'b\nc' }] })).toMatch(/httpHeaders\[0\]: .*character/);
  expect(only({ tcpSocket: { port: 80 }, timeoutSeconds: -1 })).toMatch(/timeoutSeconds must be a whole number/);
  expect(only({ tcpSocket: { port: 80 }, timeoutSeconds: '1' })).toMatch(/timeoutSeconds must be a whole number/);
});

test('a limit that no timer can have is a day', () => {
  expect(only({ tcpSocket: { port: 80 }, timeoutSeconds: 2 ** 31 - 1 })).toMatchObject({ timeoutMs: 86_400_000 });
});

test('a probe that asks this agent for a probe ends the start: it would ask itself for ever', () => {
  expect(only({ httpGet: { port: statusPort, path: 'app-health/web/livez' } })).toMatch(/a probe of its own/);
  expect(only({ httpGet: { port: statusPort, path: '/healthz/ready' } })).toMatchObject({ port: statusPort });
});

test('a host is told to have no effect', () => {
  expect(parsed({ '/app-health/web/livez': { httpGet: { port: 80, host: 'db.example' } } })).toMatchObject({
    warnings: [{ event: 'option.ignored', setting: expect.stringMatching(/httpGet\.host$/), value: 'db.example' }],
  });
});

test('§6.6: headers of a name that stands twice are kept, :authority is the host', () => {
  const httpHeaders = [
    { name: 'X-A', value: '1' },
    { name: 'x-a', value: '2' },
    { name: ':authority', value: 'web' },
  ];
  expect(only({ httpGet: { port: 80, httpHeaders } })).toMatchObject({
    headers: [httpHeaders[0], httpHeaders[1], { name: 'host', value: 'web' }],
  });
});

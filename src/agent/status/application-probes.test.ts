import { expect, test } from 'vitest';
import { parseProbes } from './application-probes.ts';

const statusPort = 15020;

function parsed(value: unknown) {
  return parseProbes(typeof value === 'string' ? value : JSON.stringify(value), statusPort);
}

function singleProbe(prober: unknown, path = '/app-health/web/livez') {
  const result = parsed({ [path]: prober });
  return 'error' in result ? result.error : result.probes.get(path);
}

test('parses each kind of probe and applies its defaults (agent §6.6)', () => {
  expect(singleProbe({ httpGet: { port: 80 } })).toEqual({
    kind: 'http',
    scheme: 'http',
    port: 80,
    path: '/',
    headers: [],
    timeoutMs: 10_000,
  });
  expect(singleProbe({ tcpSocket: { port: 80 } })).toEqual({ kind: 'tcp', port: 80, timeoutMs: 1_000 });
  expect(singleProbe({ grpc: { port: 80 } })).toEqual({ kind: 'grpc', port: 80, service: '', timeoutMs: 1_000 });
  expect(singleProbe({ grpc: { port: 80, service: 'a.B' }, timeoutSeconds: 3 })).toMatchObject({
    service: 'a.B',
    timeoutMs: 3_000,
  });
});

test('adds a leading slash to paths, escapes them, and keeps the host of the pod (agent §6.6)', () => {
  const path = (configuredPath: string) =>
    (singleProbe({ httpGet: { port: 80, path: configuredPath } }) as { path: string }).path;
  expect(path('healthz')).toBe('/healthz');
  expect(path('/a b?q=1#x')).toBe('/a%20b?q=1');
  expect(path('//evil.example/x')).toBe('//evil.example/x');
  expect(path('@evil.example/x')).toBe('/@evil.example/x');
  expect(path('/a\r\nhost: b')).toBe('/ahost:%20b');
});

test('accepts only probe paths of the status port (agent §6.6)', () => {
  const probe = { tcpSocket: { port: 80 } };
  for (const path of [
    ...['livez', 'readyz', 'startupz'].map((name) => `/app-health/web/${name}`),
    ...['prestopz', 'poststartz'].map((name) => `/app-lifecycle/web/${name}`),
  ]) {
    expect(singleProbe(probe, path), path).toMatchObject({ port: 80 });
  }
  for (const path of ['/app-health/web/other', '/app-health//livez', '/app-health/a/b/livez', '/livez', '']) {
    expect(singleProbe(probe, path), path).toMatchObject({ field: '', violation: { got: JSON.stringify(path) } });
  }
});

test('reports field, code and value of an invalid probe (agent §6.6)', () => {
  const path = '/app-health/web/livez';
  const errorOf = (value: unknown) => {
    const result = parsed(value);
    if (!('error' in result)) throw new Error('no error');
    const { field, violation } = result.error;
    return [field, violation.code, violation.got];
  };
  const probe = (fields: unknown) => errorOf({ [path]: fields });
  const http = (fields: object) => probe({ httpGet: { port: 80, ...fields } });
  expect(errorOf('{')).toEqual(['', 'FIELD_FORMAT_INVALID', '"{"']);
  expect(errorOf('')).toEqual(['', 'FIELD_FORMAT_INVALID', '""']);
  for (const [value, gotText] of [
    [null, 'null'],
    [[], 'a list'],
    ['true', '"true"'],
    [7, '7'],
  ]) {
    expect(errorOf(JSON.stringify(value))).toEqual(['', 'FIELD_TYPE_INVALID', gotText]);
  }
  expect(probe(null)).toEqual([path, 'FIELD_TYPE_INVALID', 'null']);
  expect(probe({})).toEqual([path, 'FIELD_REQUIRED', 'none']);
  expect(probe({ httpGet: null, tcpSocket: null })).toEqual([path, 'FIELD_REQUIRED', 'none']);
  expect(probe({ httpGet: { port: 80 }, tcpSocket: { port: 80 } })).toEqual([
    ...[path, 'FIELDS_EXCLUSIVE', 'httpGet and tcpSocket'],
  ]);
  expect(probe({ exec: { command: ['true'] } })).toEqual([path, 'FIELD_REQUIRED', 'none']);
  expect(http({ port: 'http' })).toEqual([`${path}.httpGet.port`, 'FIELD_TYPE_INVALID', '"http"']);
  expect(http({ port: undefined })).toEqual([`${path}.httpGet.port`, 'FIELD_TYPE_INVALID', 'null']);
  expect(http({ port: 0 })).toEqual([`${path}.httpGet.port`, 'FIELD_OUT_OF_RANGE', '0']);
  expect(http({ port: 65_536 })).toEqual([`${path}.httpGet.port`, 'FIELD_OUT_OF_RANGE', '65536']);
  expect(http({ scheme: 'ftp' })).toEqual([`${path}.httpGet.scheme`, 'FIELD_VALUE_UNKNOWN', '"ftp"']);
  expect(http({ path: 7 })).toEqual([`${path}.httpGet.path`, 'FIELD_TYPE_INVALID', '7']);
  expect(http({ httpHeaders: {} })).toEqual([`${path}.httpGet.httpHeaders`, 'FIELD_TYPE_INVALID', 'an object']);
  const header = `${path}.httpGet.httpHeaders[0]`;
  expect(http({ httpHeaders: [{ name: 'a b', value: 'c' }] })).toEqual([header, 'FIELD_FORMAT_INVALID', undefined]);
  expect(http({ httpHeaders: [{ name: 'a', value: 'b\nc' }] })).toEqual([header, 'FIELD_FORMAT_INVALID', undefined]);
  const wordsOf = (headers: object) => JSON.stringify(singleProbe({ httpGet: { port: 80, httpHeaders: [headers] } }));
  expect(wordsOf({ name: 'a b', value: 'c' })).toContain('a b');
  expect(wordsOf({ name: 'a', value: 'b\nc' })).toContain('character');
  const timeout = `${path}.timeoutSeconds`;
  expect(probe({ tcpSocket: { port: 80 }, timeoutSeconds: -1 })).toEqual([timeout, 'FIELD_OUT_OF_RANGE', '-1']);
  expect(probe({ tcpSocket: { port: 80 }, timeoutSeconds: '1' })).toEqual([timeout, 'FIELD_OUT_OF_RANGE', '"1"']);
});

test('limits probe timeouts to one day', () => {
  expect(singleProbe({ tcpSocket: { port: 80 }, timeoutSeconds: 2 ** 31 - 1 })).toMatchObject({
    timeoutMs: 86_400_000,
  });
});

test("rejects a probe of the agent's own probe path, which would recurse", () => {
  expect(singleProbe({ httpGet: { port: statusPort, path: 'app-health/web/livez' } })).toMatchObject({
    field: '/app-health/web/livez.httpGet.path',
    violation: { code: 'FIELD_NOT_ALLOWED' },
  });
  expect(singleProbe({ httpGet: { port: statusPort, path: '/healthz/ready' } })).toMatchObject({ port: statusPort });
});

test('warns that the host of a probe has no effect', () => {
  expect(parsed({ '/app-health/web/livez': { httpGet: { port: 80, host: 'db.example' } } })).toMatchObject({
    warnings: [{ event: 'option.ignored', setting: expect.stringMatching(/httpGet\.host$/), value: 'db.example' }],
  });
});

test('keeps headers with equal names, and converts :authority to host (agent §6.6)', () => {
  const httpHeaders = [
    { name: 'X-A', value: '1' },
    { name: 'x-a', value: '2' },
    { name: ':authority', value: 'web' },
  ];
  expect(singleProbe({ httpGet: { port: 80, httpHeaders } })).toMatchObject({
    headers: [httpHeaders[0], httpHeaders[1], { name: 'host', value: 'web' }],
  });
});

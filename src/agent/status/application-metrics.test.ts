import { expect, test } from 'vitest';
import { parseScrapeTargets } from './application-metrics.ts';

const parsed = (value: unknown) => parseScrapeTargets(typeof value === 'string' ? value : JSON.stringify(value), 15020);

test('parses injected scrape annotations and applies their defaults (agent §6.4)', () => {
  expect(parsed({ scrape: 'true', path: '/stats', port: '8080' })).toEqual({
    targets: [{ port: 8080, path: '/stats' }],
  });
  expect(parsed({})).toEqual({ targets: [{ port: 80, path: '/metrics' }] });
  expect(parsed({ path: 'm?a=b c' })).toEqual({ targets: [{ port: 80, path: '/m?a=b%20c' }] });
  expect(parsed({ path: '//evil.example/' })).toEqual({ targets: [{ port: 80, path: '//evil.example/' }] });
  for (const scrape of ['false', 'False', 'FALSE']) expect(parsed({ scrape })).toEqual({ targets: [] });
  expect(parsed({ scrape: 'no' })).toMatchObject({ targets: [{ port: 80 }] });
});

test('parses several scrape targets, and rejects ports of the proxy (agent §6.4)', () => {
  expect(parsed({ targets: [{ port: 8080, path: '/a' }, { port: '8081' }] })).toEqual({
    targets: [
      { port: 8080, path: '/a' },
      { port: 8081, path: '/metrics' },
    ],
  });
  for (const port of [15000, 15001, 15004, 15006, 15008, 15021, 15053, 15090]) {
    expect(parsed({ targets: [{ port }] }), String(port)).toMatchObject({
      error: { field: 'targets[0].port', violation: { code: 'FIELD_NOT_ALLOWED', got: String(port) } },
    });
  }
});

test('rejects the status port as a scrape target, because the agent would scrape itself (agent §6.4)', () => {
  const violation = { code: 'FIELD_NOT_ALLOWED', got: '15020' };
  expect(parsed({ port: '15020' })).toMatchObject({ error: { field: 'port', violation } });
  expect(parsed({ targets: [{ port: 15020 }] })).toMatchObject({ error: { field: 'targets[0].port', violation } });
});

test('rejects invalid scrape annotations with field and code, including an empty value', () => {
  const fieldError = (field: string, code: string, gotText: string) => ({
    error: { field, violation: { code, got: gotText } },
  });
  expect(parsed('')).toMatchObject(fieldError('', 'FIELD_FORMAT_INVALID', '""'));
  expect(parsed('null')).toMatchObject(fieldError('', 'FIELD_TYPE_INVALID', 'null'));
  expect(parsed({ port: 8080 })).toMatchObject(fieldError('port', 'FIELD_TYPE_INVALID', '8080'));
  for (const port of ['http', '0', '65536', '-1', '1.5', ' 80']) {
    const gotText = JSON.stringify(port);
    expect(parsed({ port }), port).toEqual({
      targets: [],
      warning: `port: must be a port from 1 to 65535, got ${gotText}`,
    });
    expect(parsed({ targets: [{ port }] }), port).toMatchObject(
      fieldError('targets[0].port', 'FIELD_FORMAT_INVALID', gotText),
    );
  }
  expect(parsed({ scrape: true })).toMatchObject(fieldError('scrape', 'FIELD_TYPE_INVALID', 'true'));
  expect(parsed({ targets: {} })).toMatchObject(fieldError('targets', 'FIELD_TYPE_INVALID', 'an object'));
  expect(parsed({ targets: [7] })).toMatchObject(fieldError('targets[0]', 'FIELD_TYPE_INVALID', '7'));
  expect(parsed({ targets: Array(17).fill({ port: 80 }) })).toMatchObject(
    fieldError('targets', 'FIELD_TOO_LARGE', '17'),
  );
});

import { expect, test } from 'vitest';
import { parseScrapeTargets } from './application-metrics.ts';

const parsed = (value: unknown) => parseScrapeTargets(typeof value === 'string' ? value : JSON.stringify(value), 15020);

test('§6.4: the annotations as they are injected, with their defaults', () => {
  expect(parsed({ scrape: 'true', path: '/stats', port: '8080' })).toEqual({
    targets: [{ port: 8080, path: '/stats' }],
  });
  expect(parsed({})).toEqual({ targets: [{ port: 80, path: '/metrics' }] });
  expect(parsed({ path: 'm?a=b c' })).toEqual({ targets: [{ port: 80, path: '/m?a=b%20c' }] });
  expect(parsed({ path: '//evil.example/' })).toEqual({ targets: [{ port: 80, path: '//evil.example/' }] });
  for (const scrape of ['false', 'False', 'FALSE']) expect(parsed({ scrape })).toEqual({ targets: [] });
  expect(parsed({ scrape: 'no' })).toMatchObject({ targets: [{ port: 80 }] });
});

test('§6.4: several targets', () => {
  expect(parsed({ targets: [{ port: 8080, path: '/a' }, { port: '8081' }] })).toEqual({
    targets: [
      { port: 8080, path: '/a' },
      { port: 8081, path: '/metrics' },
    ],
  });
  for (const port of [15000, 15001, 15004, 15006, 15008, 15021, 15053, 15090]) {
    expect(parsed({ targets: [{ port }] }), String(port)).toEqual({
      mistake: `targets[0].port ${port} is one of the proxy's own`,
    });
  }
});

test('§6.4: this agent’s own port ends the start: it would scrape itself', () => {
  expect(parsed({ port: '15020' })).toEqual({ mistake: expect.stringContaining('scrape itself') });
  expect(parsed({ targets: [{ port: 15020 }] })).toEqual({ mistake: expect.stringContaining('scrape itself') });
});

test('what cannot be read is told, and empty is not nothing', () => {
  expect(parsed('')).toEqual({ mistake: expect.stringMatching(/^failed to decode: /) });
  expect(parsed('null')).toEqual({ mistake: 'failed to decode: the value must be an object' });
  expect(parsed({ port: 8080 })).toEqual({ mistake: 'failed to decode: port must be a text' });
  for (const port of ['http', '0', '65536', '-1', '1.5', ' 80']) {
    expect(parsed({ port }), port).toEqual({
      targets: [],
      warning: `port must be a port, not ${JSON.stringify(port)}`,
    });
    expect(parsed({ targets: [{ port }] }), port).toMatchObject({ mistake: expect.stringMatching(/must be a port/) });
  }
  expect(parsed({ scrape: true })).toEqual({ mistake: 'failed to decode: scrape must be a text' });
  expect(parsed({ targets: {} })).toEqual({ mistake: 'failed to decode: targets must be a list' });
  expect(parsed({ targets: [7] })).toEqual({ mistake: 'failed to decode: targets[0] must be an object' });
  expect(parsed({ targets: Array(17).fill({ port: 80 }) })).toEqual({ mistake: 'targets are more than 16' });
});

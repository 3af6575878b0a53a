/** One tenant refers to as many issuers as its objects can contain. Other tenants must still be served (issue 33, item 3). */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bestOf } from '../../../test/harness/best-of.ts';
import { ControlPlane, serviceEntry, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { measuredTurns } from '../../../test/harness/longest-turn.ts';
import { slowness } from '../../../test/harness/slowness.ts';
import { maxSourcesOfNamespace } from './key-sources.ts';

/** Maximum time that the event loop may be blocked, in milliseconds. Measured: 9 to 13. */
const maxStretchMs = 40;
const keys = '{"keys":[{"kty":"EC"}]}';
let server: Server;
/** Paths of all requests, and the number of concurrent ones. */
let requestedPaths: string[] = [];
let runningCount = 0;
let maxRunning = 0;

beforeEach(async () => {
  requestedPaths = [];
  runningCount = 0;
  maxRunning = 0;
  server = createServer((request, response) => {
    requestedPaths.push(request.url ?? '');
    maxRunning = Math.max(maxRunning, ++runningCount);
    setImmediate(() => {
      runningCount--;
      response.end(keys);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  await stopControlPlanes();
  server.closeAllConnections();
  server.close();
});

function naming(name: string, namespace: string, from: number, to: number): string {
  const { port } = server.address() as AddressInfo;
  const rules = Array.from({ length: to - from }, (_, i) => {
    return `{issuer: i${from + i}, jwksUri: "http://127.0.0.1:${port}/${namespace}/${from + i}"}`;
  });
  return `apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: ${name}, namespace: ${namespace}}
spec: {jwtRules: [${rules.join()}]}
`;
}

function start(files: Record<string, string>): ControlPlane {
  const env = { ALLOWED_CIDRS_IN_JWKS_URIS: '127.0.0.0/8' };
  return new ControlPlane({}, { 'cart.yaml': serviceEntry(), ...files }, () => {}, env);
}

test('an object with 9,000 issuers is rejected without requests to them, and keys of other objects are fetched', async () => {
  const plane = start({ 'many.yaml': naming('many', 'mallory', 0, 9_000) });
  await plane.ready();
  expect(plane.lines.join('\n')).toContain('LIMIT_EXCEEDED');
  plane.write('bank.yaml', naming('jwt', 'bank', 0, 1));
  await eventually('the bank has its keys', () => requestedPaths.includes('/bank/0'));
  expect(requestedPaths).toEqual(['/bank/0']);
});

test('a namespace with 1,000 issuers in 10 objects gets keys up to its limit, two at a time, without blocking the event loop', async () => {
  const plane = start({});
  await plane.ready();
  const { stream } = await plane.subscribe();
  const acknowledge = ({ typeUrl, nonce: responseNonce }: { typeUrl: string; nonce: string }) =>
    stream.send({ typeUrl, responseNonce });
  for (const response of stream.responses) acknowledge(response);
  stream.onResponse = acknowledge;
  // Runs all code once, because its first execution is slow.
  plane.write('first.yaml', naming('first', 'warm', 0, 20));
  plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 82));
  await stream.next();
  await eventually('the first issuers are asked', () => new Set(requestedPaths).size === 20);
  let fetchRound = 0;
  /**
   * Longest block of the event loop while a namespace writes its objects, in milliseconds, normalized to an idle
   * machine.
   */
  const attack = async (): Promise<number> => {
    const namespace = `mallory-${++fetchRound}`;
    requestedPaths = [];
    const { maxMs: turnMs } = await measuredTurns(async () => {
      for (let i = 0; i < 10; i++)
        plane.write(`${namespace}-${i}.yaml`, naming(`many-${i}`, namespace, 100 * i, 100 * (i + 1)));
      await eventually('the first issuers are asked', () => requestedPaths.length > 0);
      plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 82 + fetchRound));
      await stream.next();
      await eventually('its share is fetched', () => new Set(requestedPaths).size === maxSourcesOfNamespace);
    });
    return turnMs / (await slowness());
  };
  // Best of three, because a run may include a garbage collection of the test process.
  const maxBlockedMs = await bestOf(3, maxStretchMs, attack);
  expect(maxRunning).toBeLessThanOrEqual(2);
  expect(maxBlockedMs).toBeLessThan(maxStretchMs);
  const { pilot_jwks_sources_rejected: rejectedSources } = (await plane.get('/debug/push_status')).json() as Record<
    string,
    object
  >;
  expect(Object.keys(rejectedSources ?? {})).toHaveLength(8 * fetchRound);
  expect(linesOf(plane.lines, 'issuers.limitExceeded')).not.toEqual([]);
  plane.write('bank.yaml', naming('jwt', 'bank', 0, 1));
  await eventually('the bank has its keys', () => requestedPaths.includes('/bank/0'));
});

/** Issue 33, item 2: access of another local user to the status port. */
import { expect, test } from 'vitest';
import { asOtherUser } from '../../../test/harness/other-user.ts';
import { authorizationFor, servingStatus } from '../../../test/harness/status-port.ts';

/** A string in this process's memory, which a heap snapshot would contain. */
const secret = `-----BEGIN PRIVATE KEY-----\n${'c2VjcmV0'.repeat(8)}\n-----END PRIVATE KEY-----`;

const curl = (url: string, options = ''): Promise<string> =>
  asOtherUser(`curl -sS -m 20 ${options} -w '\n%{http_code}' '${url}' 2>&1`);

const protectedPages: readonly (readonly [string, string])[] = [
  ['GET', '/debug/pprof/'],
  ['GET', '/debug/pprof/heap'],
  ['GET', '/debug/pprof/profile?seconds=1'],
  ['GET', '/debug/pprof/allocs?seconds=1'],
  ['GET', '/debug/pprof/goroutine'],
  ['GET', '/debug/ndsz'],
  ['GET', '/debug/trace?follow=false'],
  ['POST', '/upgrade'],
  ['POST', '/upgrade/agent'],
];

test.each(protectedPages)(
  'rejects %s %s from another local user even if heap snapshots are enabled',
  async (method, path) => {
    const { url, receivedEvents, runDir } = await servingStatus({
      heapSnapshots: true,
      withTrace: true,
      orderSuccessor: () => {},
    });
    const output = await curl(`${url}${path}`, `-X ${method}`);
    expect(output).toMatch(/\n401$/);
    expect(output).not.toContain(secret);
    expect(receivedEvents.filter(({ type }) => type.endsWith('.requested'))).toEqual([]);
    // The response names the token file, which the other user cannot read.
    const port = new URL(url).port;
    expect(output).toContain(`debugger-${port}.token`);
    expect(await asOtherUser(`cat ${runDir}/debugger-${port}.token`)).toMatch(/Permission denied/);
  },
);

test.each(['/quitquitquit', '/drain'])(
  'accepts POST %s from another local user, and returns no data of the agent',
  async (path) => {
    const { url } = await servingStatus({});
    expect(await curl(`${url}${path}`, '-X POST')).toBe('OK\n200');
  },
);

test('serves no heap snapshots by default, even to a caller with the token', async () => {
  const { url } = await servingStatus({});
  const headers = { authorization: authorizationFor(url) };
  const refusedResponse = await fetch(`${url}/debug/pprof/heap`, { headers });
  expect([refusedResponse.status, await refusedResponse.text()]).toEqual([
    403,
    expect.stringContaining('--heapSnapshots'),
  ]);
});

test('serves other profiles to a caller with the token', async () => {
  const { url } = await servingStatus({});
  const headers = { authorization: authorizationFor(url) };
  expect(await (await fetch(`${url}/debug/pprof/goroutine`, { headers })).text()).toContain('open handles');
});

test('rejects the token in a forwarded request', async () => {
  const { url } = await servingStatus({});
  const headers = { authorization: authorizationFor(url), 'x-forwarded-for': '192.0.2.1' };
  expect((await fetch(`${url}/debug/pprof/goroutine`, { headers })).status).toBe(403);
});

import { expect, test } from 'vitest';
import type { ChangesView } from './change-view.ts';
import { changesText } from './changes-text.ts';

const none = { items: [] };
const proxies = { pushed: 1, acknowledged: 0, rejected: 1, pending: 0 };
const forgedReason = 'invalid\n\n2026-11-30T21:00:00.000Z  push 99: 1 object';
const rejection = {
  at: '2026-11-30T20:00:00.000Z',
  proxy: 'web-0.shop',
  type: 'cluster.v3.Cluster',
  reason: forgedReason,
};

test('changesText prints the reason of a rejection in one line, so that a proxy cannot forge a push', () => {
  const view = {
    ...{ since: '2026-11-30T19:00:00.000Z', kept: { configuration: { evicted: 0 }, endpoints: { evicted: 0 } } },
    unpushedRejections: [{ ...rejection, receivedOn: 'connect' }],
    pushes: [
      {
        ...{ push: 2, version: 'v/2', time: '2026-11-30T19:30:00.000Z', full: true, proxies },
        ...{ objects: none, services: none, endpoints: none, pushedTo: none, pendingAt: none },
        rejections: { items: [rejection] },
      },
    ],
  } as unknown as ChangesView;
  const lines = changesText(view, true).split('\n');
  expect(lines.filter((line) => line.includes('push 99'))).toEqual([
    expect.stringMatching(/^ {2}rejected by web-0\.shop at .*invalid\\n\\n2026/),
    expect.stringMatching(/^ {2}2026-11-30T20:00:00\.000Z {2}web-0\.shop rejected .*invalid\\n\\n2026/),
  ]);
});

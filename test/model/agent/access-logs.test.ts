/** The access log service opens if standard metrics are enabled and reopens after failures; nothing waits for it. */
import { expect, test } from 'vitest';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import type { AccessLogsFailed } from '../../../machines/agent/access-log-protocol.ts';
import { accessLogsMachine } from '../../../machines/agent/access-logs/access-logs.machine.ts';
import { AgentWorld } from '../../simulation/agent-world.ts';

type Server = Parameters<Parameters<typeof fromCallback>[0]>[0];

function startAccessLogs() {
  const clock = new SimulatedClock();
  const reported: AccessLogsFailed[] = [];
  let server: Server['sendBack'] = () => {};
  let openedCount = 0;
  const machine = accessLogsMachine.provide({
    actions: {
      reportFailed: ({ context }, { reason }) => {
        reported.push({ type: 'access-logs.failed', reason, pauseMs: context.pauseMs });
      },
    },
    actors: {
      server: fromCallback(({ sendBack }) => {
        openedCount++;
        server = sendBack;
      }),
    },
  });
  const actor = createActor(machine, { clock, input: { socket: './ALS' } }).start();
  const isInState = (state: object | string): boolean => actor.getSnapshot().matches(state as never);
  return {
    clock,
    reported,
    isIn: isInState,
    tell: (event: { type: string }) => server(event),
    opened: () => openedCount,
  };
}

const listeningEvent = { type: 'access-log-socket.listening', socket: './ALS' };
const failedEvent = { type: 'access-log-socket.closed', reason: 'EACCES' };

test('an agent without standard metrics has no access log service', async () => {
  const world = await AgentWorld.startServing();
  expect(world.records.filter((record) => 'actor' in record && record.actor === 'access-logs')).toEqual([]);
});

test('an access log socket that cannot be opened is retried with increasing delays, which are reported', () => {
  const { clock, reported, tell, isIn, opened } = startAccessLogs();
  for (let failures = 1; failures <= 8; failures++) {
    expect(opened()).toBe(failures);
    tell(failedEvent);
    expect(isIn('unavailable')).toBe(true);
    clock.increment(30_000);
  }
  expect(reported.map(({ pauseMs }) => pauseMs)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  tell(listeningEvent);
  clock.increment(60_000);
  tell(failedEvent);
  expect(reported.at(-1)).toMatchObject({ reason: 'EACCES', pauseMs: 500 });
});

test('an access log server that reports no result is restarted', () => {
  const { clock, reported, isIn } = startAccessLogs();
  clock.increment(5_000);
  expect(isIn('unavailable')).toBe(true);
  expect(reported).toMatchObject([{ reason: 'access log socket not open after 5000 ms' }]);
});

test('the access log service is congested until it reads again or the last stream ends', () => {
  const { tell, isIn } = startAccessLogs();
  tell(listeningEvent);
  expect(isIn({ available: { listening: 'idle' } })).toBe(true);
  tell({ type: 'access-log-stream.opened', open: 1 } as never);
  tell({ type: 'access-log-stream.opened', open: 2 } as never);
  tell({ type: 'access-logs.congested' });
  expect(isIn({ available: { listening: 'congested' } })).toBe(true);
  tell({ type: 'access-log-stream.closed', open: 1, reason: '' } as never);
  expect(isIn({ available: { listening: 'congested' } })).toBe(true);
  tell({ type: 'access-logs.relieved' });
  expect(isIn({ available: { listening: 'receiving' } })).toBe(true);
  tell({ type: 'access-logs.congested' });
  tell({ type: 'access-log-stream.closed', open: 0, reason: '' } as never);
  expect(isIn({ available: { listening: 'idle' } })).toBe(true);
});

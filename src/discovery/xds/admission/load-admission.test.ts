import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { initialSlots } from '../../../../machines/discovery/xds/stream-admission.machine.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { AdmissionView } from '../ads-observer.ts';
import type { FirstRequest } from '../requests/ads-request.ts';
import type { AdmittedStream } from './ads-admission.ts';
import { KnownNodes } from './known-nodes.ts';
import { LoadAdmission } from './load-admission.ts';

const cleanups: (() => void)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  for (const end of cleanups.splice(0)) end();
  vi.useRealTimers();
});

const newClient: FirstRequest = { nodeId: undefined, isReturning: false };
const returningClient: FirstRequest = { nodeId: undefined, isReturning: true };

function createAdmission(perSecond = 0) {
  const loggedEvents: string[] = [];
  const views: AdmissionView[] = [];
  const admission = new LoadAdmission({
    ...{ perSecond, known: new KnownNodes(() => performance.now()), requests: () => 0, proxies: () => 0 },
    logger: { ...silentLogger, info: (event: string) => void loggedEvents.push(event) },
    onMeasured: (view) => void views.push(view),
  });
  cleanups.push(() => admission.stop());
  const startedNames: string[] = [];
  const admittedStreams = new Map<string, AdmittedStream>();
  let clients = 0;
  /** Each client has its own address. */
  const openStream = (name: string, first: FirstRequest = newClient, isTrusted = true): (() => void) =>
    admission.admit(
      { peer: `10.0.${++clients >> 8}.${clients & 255}:1`, isTrusted },
      (stream) => {
        startedNames.push(name);
        admittedStreams.set(name, stream);
      },
      () => void startedNames.push(`${name} refused`),
      (onFirstRequest) => queueMicrotask(() => onFirstRequest(first)),
    );
  /** New clients take all slots. */
  const fill = (): void => {
    for (let i = 0; i < initialSlots; i++) openStream(`new ${i}`);
    startedNames.length = 0;
  };
  return {
    admission,
    ask: openStream,
    fill,
    begun: startedNames,
    admitted: admittedStreams,
    logged: loggedEvents,
    views,
  };
}

test('LoadAdmission admits a returning client with configuration before clients that need the full configuration', async () => {
  const { ask, fill, begun } = createAdmission();
  fill();
  ask('new');
  ask('returning', returningClient);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual(['returning']);
});

test('LoadAdmission limits returning clients with separate slots', async () => {
  const { ask, fill, begun } = createAdmission();
  fill();
  for (let i = 0; i <= initialSlots; i++) ask(`returning ${i}`, returningClient);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toHaveLength(initialSlots);
});

test('LoadAdmission requires a certificate before it treats a client as returning', async () => {
  const { ask, fill, begun } = createAdmission();
  fill();
  ask('returning', returningClient, false);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual([]);
});

test('LoadAdmission applies a configured rate to returning clients too', async () => {
  const { ask, begun } = createAdmission(1);
  ask('first');
  ask('returning', returningClient);
  await vi.advanceTimersByTimeAsync(900);
  expect(begun).toEqual(['first']);
});

test('LoadAdmission does not admit a returning client that closes its stream while waiting', async () => {
  const { ask, fill, begun } = createAdmission();
  fill();
  for (let i = 0; i < initialSlots; i++) ask(`returning ${i}`, returningClient);
  const leave = ask('closed', returningClient);
  await vi.advanceTimersByTimeAsync(1);
  leave();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(begun).not.toContain('closed');
});

test('LoadAdmission starts a stream only once if the stream is admitted before its first request', async () => {
  const { ask, fill, begun, admitted } = createAdmission();
  fill();
  ask('next', returningClient);
  admitted.get('new 0')!.release();
  vi.runAllTicks();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(begun).toEqual(['next']);
});

test('LoadAdmission logs once when clients wait longer than 1 s, and when the wait ends', async () => {
  const { ask, fill, logged, views } = createAdmission();
  fill();
  for (let i = 0; i < initialSlots; i++) ask(`late ${i}`);
  expect(logged).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(logged).toEqual([]);
  // A stream without a response frees its slot after a second.
  for (let i = 0; i < 900; i++) ask(`more ${i}`);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(logged).toEqual(['admission.queued']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(logged).toEqual(['admission.queued', 'admission.completed']);
  expect(views.at(-1)).toEqual({ streams: 0, connections: 0, slots: initialSlots });
});

test('LoadAdmission delays new connections while 3,500 streams wait', async () => {
  const { admission, ask, fill } = createAdmission();
  let woken = 0;
  const ports = { waitingCount: 0, isFull: false, setSlots: () => {}, wakeConnections: () => void woken++ };
  admission.setPorts(ports);
  fill();
  const leave = Array.from({ length: 3_500 }, (_, i) => ask(`stream ${i}`));
  expect(admission.connectionSetUp.isOpen()).toBe(false);
  for (const closeStream of leave.slice(0, 10)) closeStream();
  expect(admission.connectionSetUp.isOpen()).toBe(true);
  await vi.advanceTimersByTimeAsync(60);
  expect(woken).toBeGreaterThan(0);
});

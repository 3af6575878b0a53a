/** One request to a cluster's signer ends, whatever its result (machines/discovery/ca/signing-request.machine.ts). */
import { expect, it } from 'vitest';
import { fromPromise } from 'xstate';
import {
  type RequestReading,
  type RequestStep,
  type SigningRequestOutput,
  signingRequestMachine,
} from '../../machines/discovery/ca/signing-request.machine.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

type Result<T> = T | 'never' | Error;

const doneStep: RequestStep = { outcome: 'done' };
const failedStep: RequestStep = { outcome: 'failed', reason: 'forbidden' };
const pendingReading: RequestReading = { outcome: 'pending' };

class Request {
  static readonly instances: Request[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly requests: string[] = [];
  output: SigningRequestOutput | undefined;
  requestOutput: SigningRequestOutput | undefined;
  failure: unknown;

  constructor(
    readings: readonly Result<RequestReading>[],
    { approves = true, creation = doneStep, approval = doneStep, removal = undefined as Result<undefined> } = {} as {
      approves?: boolean;
      creation?: Result<RequestStep>;
      approval?: Result<RequestStep>;
      removal?: Result<undefined>;
    },
  ) {
    Request.instances.push(this);
    const remainingReadings = [...readings];
    const respond = async <T>(operation: string, value: Result<T>): Promise<T> => {
      this.requests.push(operation);
      if (value === 'never') return new Promise(() => {});
      if (value instanceof Error) throw value;
      return value;
    };
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    const machine = signingRequestMachine.provide({
      actors: {
        createRequest: fromPromise<RequestStep, undefined>(() => respond('make', creation)),
        approveRequest: fromPromise<RequestStep, undefined>(() => respond('approve', approval)),
        readRequest: fromPromise<RequestReading, undefined>(() =>
          respond('read', remainingReadings.length > 1 ? remainingReadings.shift()! : remainingReadings[0]!),
        ),
        removeRequest: fromPromise<void, undefined>(() => respond('remove', removal)),
      },
      actions: {
        reportResult: (_, result) => {
          this.output = result;
        },
      },
    });
    const actor = startRoot(machine, {
      ...{ id: 'signing-request-1', input: { approves, limitMs: 10_000 }, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
    actor.subscribe({
      complete: () => {
        this.requestOutput = actor.getSnapshot().output;
      },
    });
  }

  /** @param ms duration, passed in steps between which results arrive */
  async passTime(ms: number): Promise<void> {
    for (let passed = 0; passed <= ms; passed += 100) {
      for (let tick = 0; tick < 10; tick++) await Promise.resolve();
      if (passed < ms) this.clock.advance(100);
    }
  }
}

eachWorldFollowsTheDiagrams(['signing-request'], ['creation', 'approval', 'reading', 'removal'], {
  instances: Request.instances,
  machine: signingRequestMachine,
});

it('a signing request is created, approved, read until it is signed, reported, and removed', async () => {
  const request = new Request([pendingReading, pendingReading, { outcome: 'issued' }]);
  await request.passTime(1_000);
  expect(request.requests).toEqual(['make', 'approve', 'read', 'read', 'read', 'remove']);
  expect(request.output).toEqual({ outcome: 'issued' });
  expect(request.requestOutput).toEqual({ outcome: 'issued' });
});

it('a signing request is not approved if others approve it', async () => {
  const request = new Request([{ outcome: 'issued' }], { approves: false });
  await request.passTime(0);
  expect(request.requests).toEqual(['make', 'read', 'remove']);
});

it.each<[string, readonly Result<RequestReading>[], object, SigningRequestOutput]>([
  ['cannot be created', [pendingReading], { creation: failedStep }, { outcome: 'failed', reason: 'forbidden' }],
  ['cannot be approved', [pendingReading], { approval: failedStep }, { outcome: 'failed', reason: 'forbidden' }],
  ['is denied', [{ outcome: 'refused', reason: 'no' }], {}, { outcome: 'refused', reason: 'no' }],
  [
    'is created by an effect that throws',
    [pendingReading],
    { creation: new Error('bug') },
    { outcome: 'failed', reason: 'bug' },
  ],
  [
    'is approved by an effect that throws',
    [pendingReading],
    { approval: new Error('bug') },
    { outcome: 'failed', reason: 'bug' },
  ],
  ['is read by an effect that throws', [new Error('bug')], {}, { outcome: 'failed', reason: 'bug' }],
])('a signing request is reported immediately and removed if it %s', async (_, readings, options, result) => {
  const request = new Request(readings, options);
  await request.passTime(0);
  expect(request.output).toEqual(result);
  expect(request.requests.at(-1)).toBe('remove');
  expect(request.requestOutput).toEqual(result);
});

it.each<[string, readonly Result<RequestReading>[], object, string]>([
  ['its signer never signs', [pendingReading], {}, 'there is no certificate after 10 s'],
  [
    'the API server does not respond',
    [{ outcome: 'unknown', reason: 'away' }],
    {},
    'there is no certificate after 10 s: away',
  ],
  ['its read hangs', ['never'], {}, 'there is no certificate after 10 s'],
  ['its creation hangs', [pendingReading], { creation: 'never' }, 'there is no certificate after 10 s'],
  ['its approval hangs', [pendingReading], { approval: 'never' }, 'there is no certificate after 10 s'],
])('a signing request times out if %s', async (_, readings, options, reason) => {
  const request = new Request(readings, options);
  await request.passTime(9_900);
  expect(request.output).toBeUndefined();
  await request.passTime(100);
  expect(request.output).toEqual({ outcome: 'failed', reason });
  expect(request.requests.filter((operation) => operation === 'read').length).toBeLessThan(20);
  await request.passTime(100);
  expect(request.requestOutput).toEqual(request.output);
});

it.each<[string, Result<undefined>, number]>([
  ['gets no response', 'never', 5_000],
  ['throws an error', new Error('bug'), 0],
])('a signing request ends even if its removal %s', async (_, removal, ms) => {
  const request = new Request([{ outcome: 'issued' }], { removal });
  await request.passTime(ms);
  expect(request.requestOutput).toEqual({ outcome: 'issued' });
});

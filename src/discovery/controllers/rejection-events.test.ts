import { expect, it } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { WriteGate } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import type { ApiRequest, KubernetesObject } from '../kubernetes/api-server.ts';
import { maxEventsOfNamespace, maxWarningEventsOfNamespace, RejectionEvents } from './rejection-events.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const run = { retry: false, includesAll: false };
const limit = 'spec.ports: has 5000 items, the limit is 1024 (LIMIT_EXCEEDED)';

/** A leader that writes Events. `answers` defines which requests fail. */
function createWriter() {
  const writtenEvents: KubernetesObject[] = [];
  const { log, lines: warnings } = recordingLog();
  const state = { now: 0, code: 0, isKnown: true, uid: '' };
  const request = async ({ body }: ApiRequest): Promise<KubernetesObject> => {
    if (state.code !== 0)
      throw new ApiError({ kind: 'status', code: state.code, reason: '', message: `status ${state.code}` } as never);
    writtenEvents.push(body as KubernetesObject);
    return body as KubernetesObject;
  };
  const gate = new WriteGate({ server: { request }, now: () => clockReading, writeMs: 1_000 });
  gate.extend(clockReading, 10_000);
  const duty = new RejectionEvents({
    ...{ lease: 'test', identity: 'pilot-0', now: () => state.now, time: () => '2026-01-01T00:00:00Z' },
    objectOf: (_, key) => {
      const [namespace = '', name = ''] = key.split('/');
      const metadata = { namespace, name, uid: state.uid || `uid-${name}`, resourceVersion: '7' };
      return state.isKnown ? { apiVersion: 'v1', metadata } : undefined;
    },
    log,
  });
  const write = (order = run) => duty.writeDue(order, gate);
  const namespaces = (): (string | undefined)[] => writtenEvents.splice(0).map(({ metadata }) => metadata.namespace);
  return { duty, gate, written: writtenEvents, warnings, state, write, namespaces };
}

it('an Event names the rejected object, the reason and the limit', async () => {
  const { duty, written, write } = createWriter();
  duty.report('Service/shop/web', limit);
  expect(duty.isDue).toBe(true);
  expect(await write()).toEqual({ writtenCount: 1, failedCount: 0, reason: '' });
  expect(written).toEqual([
    expect.objectContaining({
      ...{ apiVersion: 'v1', kind: 'Event', type: 'Warning', reason: 'LimitExceeded', message: limit },
      metadata: { namespace: 'shop', name: expect.stringMatching(/^web\.[0-9a-f]{16}$/) },
      involvedObject: {
        ...{ apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: 'uid-web', resourceVersion: '7' },
      },
      ...{ reportingComponent: 'chartpilot', reportingInstance: 'pilot-0' },
    }),
  ]);
  expect(duty.isDue).toBe(false);
});

it('an Event for a repeated rejection of an object is written once, even if the object was valid in between', async () => {
  const { duty, write, namespaces, state } = createWriter();
  duty.report('Pod/shop/web', limit);
  await write();
  duty.report('Pod/shop/web', undefined);
  duty.report('Pod/shop/web', limit);
  await write();
  expect(namespaces()).toEqual(['shop']);
  duty.report('Pod/shop/web', 'another reason');
  await write();
  // A recreated object has no Event yet.
  state.uid = 'another';
  duty.report('Pod/shop/web', 'another reason');
  await write();
  expect(namespaces()).toEqual(['shop', 'shop']);
});

it('a namespace receives a limited number of Events in 10 minutes, alternating with other namespaces', async () => {
  const { duty, write, namespaces, state } = createWriter();
  for (let index = 0; index < 1_000; index++) duty.report(`EndpointSlice/mallory/s${index}`, limit);
  duty.report('Ingress/bank/front', limit);
  await write();
  const first = namespaces();
  expect(first.slice(0, 2)).toContain('bank');
  expect(first.filter((one) => one === 'mallory')).toHaveLength(maxEventsOfNamespace);
  duty.report('EndpointSlice/mallory/later', limit);
  await write();
  expect(namespaces()).toEqual([]);
  state.now = 600_001;
  duty.report('EndpointSlice/mallory/latest', limit);
  await write();
  expect(namespaces()).toEqual(['mallory']);
});

it('an object receives no Event if its status contains the rejection, it has no namespace, or it is deleted', async () => {
  const { duty, write, written, state } = createWriter();
  duty.report('VirtualService/shop/web', limit);
  duty.report('Service//web', limit);
  expect(duty.isDue).toBe(false);
  state.isKnown = false;
  duty.report('Service/shop/web', limit);
  await write();
  expect(written).toEqual([]);
});

it('an Event that already exists counts as written, a failed Event is retried, and an invalid Event is dropped', async () => {
  const { duty, write, state, written } = createWriter();
  state.code = 409;
  duty.report('Service/shop/a', limit);
  expect(await write()).toMatchObject({ failedCount: 0 });
  state.code = 503;
  duty.report('Service/shop/b', limit);
  expect(await write()).toMatchObject({ failedCount: 1, reason: 'status 503 [API_REQUEST_REJECTED]' });
  state.code = 0;
  expect(await write({ retry: true, includesAll: false })).toMatchObject({ writtenCount: 1, failedCount: 0 });
  expect(written).toHaveLength(1);
  state.code = 422;
  duty.report('Service/shop/c', limit);
  expect(await write()).toMatchObject({ failedCount: 0 });
});

it('Events are disabled until the next term if permission is missing, and a warning names the permission', async () => {
  const { duty, write, state, warnings, written } = createWriter();
  state.code = 403;
  for (const name of ['a', 'b', 'c']) duty.report(`Service/shop/${name}`, limit);
  expect(await write()).toMatchObject({ writtenCount: 0, failedCount: 0 });
  expect(duty.isDue).toBe(false);
  expect(warnings).toMatchObject([{ event: 'rejectionEvents.forbidden', level: 'warn' }]);
  state.code = 0;
  await write({ retry: false, includesAll: true });
  expect(written.length).toBeGreaterThan(0);
});

it('an object that takes effect only partly receives an Event for each distinct warning', async () => {
  const { duty, written, write } = createWriter();
  const warning = (text: string) => new Map([['Service/shop/web', { generation: 0, reason: 'PortNotFound', text }]]);
  const messages = (): (string | undefined)[] => written.splice(0).map((event) => `${event.reason} ${event.message}`);
  duty.setWarnings(warning('spec.ports[0].targetPort: a'));
  duty.setWarnings(new Map([['VirtualService/shop/web', { generation: 1, reason: 'HostNotFound', text: 'x' }]]));
  await write();
  expect(messages()).toEqual(['PortNotFound spec.ports[0].targetPort: a']);
  duty.setWarnings(warning('spec.ports[0].targetPort: a'));
  duty.setWarnings(warning('spec.ports[0].targetPort: a'));
  await write();
  expect(messages()).toEqual([]);
  duty.setWarnings(warning('spec.ports[0].targetPort: b'));
  await write();
  expect(messages()).toEqual(['PortNotFound spec.ports[0].targetPort: b']);
});

it('warnings of a namespace do not displace the Events of its rejections', async () => {
  const { duty, written, write } = createWriter();
  const names = Array.from({ length: 2 * maxWarningEventsOfNamespace }, (_, index) => `Ingress/shop/i${index}`);
  duty.setWarnings(new Map(names.map((key) => [key, { generation: 0, reason: 'HostNotFound', text: key }])));
  await write();
  expect(written.splice(0)).toHaveLength(maxWarningEventsOfNamespace);
  for (let index = 0; index < 2 * maxEventsOfNamespace; index++) duty.report(`Service/shop/s${index}`, limit);
  await write();
  expect(written).toHaveLength(maxEventsOfNamespace);
});

import { expect, it } from 'vitest';
import { WriteGate } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { customResourceDefinitions, resourceOf } from '../kubernetes/api-resource.ts';
import { nameOf } from '../kubernetes/api-server.effects.ts';
import type { ApiRequest } from '../kubernetes/api-server.ts';
import { ObjectStore } from '../kubernetes/store/object-store.ts';
import { GatewayClassDuty } from './gateway-class.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const definition = 'gatewayclasses.gateway.networking.k8s.io';

/** A cluster that records writes. */
function createDuty(respond = (_: ApiRequest): void => {}) {
  const stores = new Map([
    ['class', { store: new ObjectStore(), name: nameOf(resourceOf('GatewayClass')) }],
    ['definition', { store: new ObjectStore(), name: nameOf(customResourceDefinitions) }],
  ]);
  const readers = new Map<string, (changes: readonly never[]) => void>();
  const storeOf = (resource: Parameters<typeof nameOf>[0]): ObjectStore =>
    [...stores.values()].find(({ name }) => name === nameOf(resource))!.store;
  const writtenBodies: unknown[] = [];
  let version = 0;
  const gate = new WriteGate({
    server: {
      request: async (request) => {
        writtenBodies.push([request.method, request.body]);
        respond(request);
        return { metadata: { name: 'istio' } };
      },
    },
    now: () => clockReading,
    writeMs: 1_000,
  });
  gate.extend(clockReading, 10_000);
  const duty = new GatewayClassDuty({
    lease: 'test',
    informers: {
      storeOf,
      servedResource: (resource) => resource as never,
      addReader: (resource, reader) => void readers.set(nameOf(resource), reader as never),
    },
  });
  const change = (of: 'class' | 'definition', type: 'ADDED' | 'DELETED', name: string): void => {
    const { store, name: kind } = stores.get(of)!;
    const object = { metadata: { name, uid: name, resourceVersion: `${++version}` } };
    readers.get(kind)!(store.apply({ type, object }) as never);
  };
  const run = (includesAll = false) => duty.writeDue({ retry: true, includesAll }, gate);
  return { change, duty, run, written: writtenBodies };
}

const createdRequests = [
  'POST',
  {
    ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', metadata: { name: 'istio' } },
    spec: expect.objectContaining({ controllerName: 'istio.io/gateway-controller' }),
  },
];

it('GatewayClass istio is created if the CRDs of the Gateway API exist', async () => {
  const { change, duty, run, written } = createDuty();
  await run(true);
  change('definition', 'ADDED', 'widgets.example.com');
  expect([duty.isDue, written]).toEqual([false, []]);
  change('definition', 'ADDED', definition);
  expect(duty.isDue).toBe(true);
  await run();
  expect(written).toEqual([createdRequests]);
});

it('GatewayClass istio is never overwritten, but is created again after deletion', async () => {
  const { change, duty, run, written } = createDuty();
  change('class', 'ADDED', 'istio');
  change('definition', 'ADDED', definition);
  await run(true);
  change('class', 'ADDED', 'other');
  change('class', 'DELETED', 'other');
  expect([duty.isDue, written]).toEqual([false, []]);
  change('class', 'DELETED', 'istio');
  await run();
  expect(written).toEqual([createdRequests]);
});

it('GatewayClass istio is kept if another writer creates it concurrently', async () => {
  const { change, run, written } = createDuty(() => {
    throw new ApiError({ kind: 'status', code: 409, reason: 'AlreadyExists', message: '', causes: [] } as never);
  });
  change('definition', 'ADDED', definition);
  expect(await run()).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  expect(written).toHaveLength(1);
});

it('GatewayClass istio is created on a retry after a failure', async () => {
  let isRejected = true;
  const { change, run } = createDuty(() => {
    if (isRejected) throw new ApiError({ kind: 'status', code: 404, message: 'not served', causes: [] } as never);
  });
  change('definition', 'ADDED', definition);
  expect(await run()).toMatchObject({ failedCount: 1, reason: expect.stringContaining('not served') });
  isRejected = false;
  expect(await run()).toMatchObject({ writtenCount: 1, failedCount: 0 });
});

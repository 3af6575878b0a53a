import { expect, it } from 'vitest';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { ClusterObjects } from './cluster-objects.ts';

const conditionsOf = (status: unknown) => {
  const object: KubernetesObject = { metadata: { name: 'web', namespace: 'shop' }, status };
  return new ClusterObjects({ source: { onRejected: () => {} }, objectOf: () => object }).statusOf(
    'VirtualService/shop/web',
  )?.conditions;
};

it("ClusterObjects reads only the control plane's conditions from a status", () => {
  const good = { type: 'Reconciled', status: 'True', observedGeneration: 3 };
  const expected = new Map([['Reconciled', { status: 'True', observedGeneration: 3 }]]);
  expect(conditionsOf({ conditions: [good, { type: 'Ready', status: 'True' }] })).toEqual(expected);
  const ofNone = { type: 'Reconciled', status: 'True' };
  expect(conditionsOf({ conditions: [ofNone] })?.get('Reconciled')?.observedGeneration).toBeNaN();
  const strange = { toString: 1, valueOf: 1 };
  expect(conditionsOf({ conditions: [{ type: strange }, strange, null, 'Rejected', good] })).toEqual(expected);
  const rejected = { type: 'Rejected', status: strange, observedGeneration: strange };
  expect(conditionsOf({ conditions: [rejected] })?.get('Rejected')?.status).toBe('');
  for (const status of [undefined, null, 'no', { conditions: strange }])
    expect(conditionsOf(status)).toEqual(new Map());
});

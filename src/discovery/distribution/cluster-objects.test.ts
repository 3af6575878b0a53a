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
  const goodCondition = { type: 'Reconciled', status: 'True', observedGeneration: 3 };
  const expected = new Map([['Reconciled', { status: 'True', observedGeneration: 3 }]]);
  expect(conditionsOf({ conditions: [goodCondition, { type: 'Ready', status: 'True' }] })).toEqual(expected);
  const withoutGeneration = { type: 'Reconciled', status: 'True' };
  expect(conditionsOf({ conditions: [withoutGeneration] })?.get('Reconciled')?.observedGeneration).toBeNaN();
  const objectValue = { toString: 1, valueOf: 1 };
  expect(conditionsOf({ conditions: [{ type: objectValue }, objectValue, null, 'Rejected', goodCondition] })).toEqual(
    expected,
  );
  const rejectedCondition = { type: 'Rejected', status: objectValue, observedGeneration: objectValue };
  expect(conditionsOf({ conditions: [rejectedCondition] })?.get('Rejected')?.status).toBe('');
  for (const status of [undefined, null, 'no', { conditions: objectValue }])
    expect(conditionsOf(status)).toEqual(new Map());
});

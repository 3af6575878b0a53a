import { expect, test } from 'vitest';
import { MergeError, mergePod } from './strategic-merge.ts';

const pod = {
  spec: {
    containers: [
      {
        name: 'app',
        env: [
          { name: 'A', value: '1' },
          { name: 'B', value: '1' },
        ],
        args: ['x', 'y'],
      },
      { name: 'b' },
    ],
    volumes: [{ name: 'mine' }],
    tolerations: [{ key: 'k' }],
    initContainers: [{ name: 'i1' }],
  },
};

test("items of a list with a merge key are merged, with the patch's items first", () => {
  const mergedPod = mergePod(pod, {
    spec: {
      containers: [
        { name: 'proxy' },
        {
          name: 'app',
          env: [
            { name: 'Z', value: '9' },
            { name: 'A', value: '2' },
          ],
          args: ['z'],
        },
      ],
      volumes: [{ name: 'v1' }],
      tolerations: [{ key: 't' }],
    },
  });
  expect(mergedPod.spec).toEqual({
    containers: [
      { name: 'proxy' },
      {
        name: 'app',
        env: [
          { name: 'Z', value: '9' },
          { name: 'A', value: '2' },
          { name: 'B', value: '1' },
        ],
        args: ['z'],
      },
      { name: 'b' },
    ],
    volumes: [{ name: 'v1' }, { name: 'mine' }],
    tolerations: [{ key: 't' }],
    initContainers: [{ name: 'i1' }],
  });
});

test('an empty list with a merge key changes nothing, null removes a field, and $patch deletes or replaces', () => {
  expect(mergePod(pod, { spec: { containers: [] } })).toEqual(pod);
  expect(mergePod(pod, { spec: { tolerations: null } }).spec).not.toHaveProperty('tolerations');
  expect(mergePod(pod, { spec: { containers: [{ name: 'app', $patch: 'delete' }] } }).spec.containers).toEqual([
    { name: 'b' },
  ]);
  expect(mergePod(pod, { spec: { containers: [{ $patch: 'replace' }, { name: 'c' }] } }).spec.containers).toEqual([
    { name: 'c' },
  ]);
  expect(mergePod(pod, { spec: { $patch: 'replace', nodeName: 'n' } }).spec).toEqual({ nodeName: 'n' });
});

test('an item without its merge key or an unknown directive causes an error that names the field', () => {
  expect(() => mergePod(pod, { spec: { containers: [{ image: 'x' }] } })).toThrow(
    new MergeError('spec.containers[0].name: is required, it identifies the item'),
  );
  expect(() => mergePod(pod, { spec: { '$setElementOrder/containers': [] } })).toThrow(MergeError);
});

test('a key named __proto__ is kept as an ordinary key', () => {
  const patch = JSON.parse('{"metadata": {"labels": {"__proto__": "x"}}}') as Record<string, unknown>;
  expect(JSON.stringify(mergePod({}, patch))).toBe('{"metadata":{"labels":{"__proto__":"x"}}}');
});

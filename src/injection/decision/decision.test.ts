import { expect, test } from 'vitest';
import type { Pod } from '../pod/pod.ts';
import { decideInjection, type InjectionPolicy } from './decision.ts';
import { callingEntries, webhookEntriesOf } from './webhook-entries.ts';

const policy: InjectionPolicy = { policy: 'enabled', neverInjectSelector: [], alwaysInjectSelector: [] };
const key = 'sidecar.istio.io/inject';

function podOf(
  labels: Record<string, string> = {},
  annotations: Record<string, string> = {},
  hostNetwork = false,
): Pod {
  return { metadata: { labels, annotations }, spec: { containers: [], hostNetwork } };
}

test.each([
  ['host network', podOf({ [key]: 'true' }, {}, true), 'shop', policy, false],
  [
    'its operating system Windows',
    { metadata: { labels: { [key]: 'true' } }, spec: { containers: [], os: { name: 'windows' } } },
    'shop',
    policy,
    false,
  ],
  ['a system namespace', podOf({ [key]: 'true' }), 'kube-system', policy, false],
  ['an unknown policy, even with a label', podOf({ [key]: 'true' }), 'shop', { ...policy, policy: 'on' }, false],
  ['label true before annotation false', podOf({ [key]: 'true' }, { [key]: 'false' }), 'shop', policy, true],
  ['annotation false without a label', podOf({}, { [key]: 'false' }), 'shop', policy, false],
  ['an empty label before annotation false', podOf({ [key]: '' }, { [key]: 'false' }), 'shop', policy, true],
  ['label yes, a value of Istio 1.16', podOf({ [key]: 'Yes' }), 'shop', { ...policy, policy: 'disabled' }, true],
  ['label off', podOf({ [key]: 'off' }), 'shop', policy, false],
  ['policy enabled, because the label has a misspelt value', podOf({ [key]: 'flase' }), 'shop', policy, true],
  [
    'policy disabled, because the label has a misspelt value',
    podOf({ [key]: 'ture' }),
    'shop',
    { ...policy, policy: 'disabled' },
    false,
  ],
  [
    'neverInjectSelector before alwaysInjectSelector',
    podOf({ a: '1' }),
    'shop',
    {
      policy: 'disabled',
      neverInjectSelector: [{ matchLabels: { a: '1' } }],
      alwaysInjectSelector: [{ matchLabels: { a: '1' } }],
    },
    false,
  ],
  [
    'alwaysInjectSelector before policy disabled',
    podOf({ a: '1' }),
    'shop',
    {
      ...policy,
      policy: 'disabled',
      alwaysInjectSelector: [{ matchExpressions: [{ key: 'a', operator: 'Exists' as const }] }],
    },
    true,
  ],
  [
    'the policy, because an empty neverInjectSelector matches no pod',
    podOf(),
    'shop',
    { ...policy, neverInjectSelector: [{}] },
    true,
  ],
  [
    'label true before neverInjectSelector',
    podOf({ a: '1', [key]: 'true' }),
    'shop',
    { ...policy, neverInjectSelector: [{ matchLabels: { a: '1' } }] },
    true,
  ],
])('the injection of a pod is decided by %s', (_, pod, namespace, settings, expected) => {
  const { inject, rule } = decideInjection(pod, namespace, settings);
  expect({ inject, hasRule: rule !== '' }).toEqual({ inject: expected, hasRule: true });
});

test('an ignored label or annotation value is reported', () => {
  expect(decideInjection(podOf({ [key]: 'flase' }), 'shop', policy).ignoredWord).toBe('flase');
});

/** Namespace labels, pod labels, and the webhook entries that the API server calls for the pod. */
test.each([
  [{ 'istio-injection': 'enabled', 'istio.io/rev': 'x' }, { 'istio.io/rev': 'x' }, ['default']],
  [{ 'istio-injection': 'enabled' }, { [key]: 'false' }, []],
  [{ 'istio-injection': 'disabled' }, { [key]: 'true', 'istio.io/rev': 'x' }, []],
  [{ 'istio.io/rev': 'x' }, { 'istio.io/rev': 'y' }, ['x']],
  [{}, { [key]: 'true' }, ['default']],
  [{}, { 'istio.io/rev': 'x' }, ['x']],
  [{}, { [key]: 'true', 'istio.io/rev': 'x' }, ['x']],
  [{}, {}, []],
  [{ 'istio-injection': 'yes' }, { [key]: 'true' }, []],
  [{ 'istio.io/rev': 'default' }, {}, ['default']],
])('a pod with namespace labels %j and pod labels %j is sent to configurations %j', (namespace, pod, expected) => {
  const configurations = ['', 'x', 'y'];
  const calling = configurations.filter(
    (revision) =>
      callingEntries(webhookEntriesOf(revision), namespace as Record<string, string>, pod as Record<string, string>)
        .length > 0,
  );
  expect(calling.map((revision) => revision || 'default')).toEqual(expected);
});

test('a pod is sent to no configuration if it has only the annotation or its namespace has an unknown revision (§1.1)', () => {
  const called = (revision: string, namespace: Record<string, string>, pod: Record<string, string> = {}) =>
    callingEntries(webhookEntriesOf(revision), namespace, pod).map(({ name }) => name);
  // The API server selects by labels only.
  expect(called('', {})).toEqual([]);
  expect(called('x', { 'istio-injection': 'enabled' })).toEqual([]);
  expect(called('default', { 'istio-injection': 'enabled' })).toEqual(['namespace.sidecar-injector.istio.io']);
  expect(webhookEntriesOf('')).toEqual(webhookEntriesOf('default'));
});

test('a namespace without labels is injected only if the settings enable this, and system namespaces never are (§1.1)', () => {
  const called = (name: string, injectsUnlabelled: boolean) =>
    callingEntries(webhookEntriesOf('', { injectsUnlabelled }), { 'kubernetes.io/metadata.name': name }, {}).map(
      (entry) => entry.name,
    );
  expect(called('shop', true)).toEqual(['auto.sidecar-injector.istio.io']);
  expect(called('shop', false)).toEqual([]);
  for (const name of ['kube-system', 'kube-public', 'kube-node-lease', 'local-path-storage'])
    expect(called(name, true)).toEqual([]);
});

test('a pod is sent to each configuration at most once', () => {
  const values = [undefined, 'enabled', 'disabled', 'true', 'false', 'x', 'default'];
  for (const injection of values)
    for (const revision of values)
      for (const inject of values)
        for (const podRevision of values) {
          const labels = (record: Record<string, string | undefined>): Record<string, string> =>
            Object.fromEntries(
              Object.entries(record).filter((entry): entry is [string, string] => entry[1] !== undefined),
            );
          const namespace = labels({ 'istio-injection': injection, 'istio.io/rev': revision });
          const pod = labels({ [key]: inject, 'istio.io/rev': podRevision });
          for (const ownValue of ['', 'x']) {
            const entries = webhookEntriesOf(ownValue, { injectsUnlabelled: true });
            expect(
              callingEntries(entries, namespace, pod).length,
              JSON.stringify({ namespace, pod, own: ownValue }),
            ).toBeLessThan(2);
          }
        }
});

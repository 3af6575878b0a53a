import { expect, it } from 'vitest';
import { maxKubeconfigBytes, maxRemoteClusters, namedClusters } from './remote-secrets.ts';

const kubeconfig = (token = 'secret-token', user: object = { token }): string =>
  JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
    users: [{ name: 'c', user }],
  });

const secret = (name: string, values: Readonly<Record<string, string>>) => ({
  metadata: { name, namespace: 'istio-system' },
  data: Object.fromEntries(Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});

it('each key of a Secret defines a cluster, with a digest that changes only with its kubeconfig', () => {
  const of = (token: string) => namedClusters([secret('s', { a: kubeconfig(token), b: kubeconfig() })], 'own').clusters;
  const [one, other] = [of('1'), of('2')];
  expect([...one.keys()]).toEqual(['a', 'b']);
  expect(one.get('a')!.location).toBe('Secret istio-system/s: a');
  expect(one.get('a')!.digest).not.toBe(other.get('a')!.digest);
  expect(one.get('b')!.digest).toBe(other.get('b')!.digest);
});

it("a cluster is ignored if it is the control plane's own, or if a Secret with an earlier name also defines it", () => {
  const secrets = [secret('two', { a: kubeconfig('2') }), secret('one', { a: kubeconfig('1'), own: kubeconfig() })];
  const { clusters, problems } = namedClusters(secrets, 'own');
  expect(clusters.get('a')!.location).toBe('Secret istio-system/one: a');
  expect([...clusters.keys()]).toEqual(['a']);
  expect(problems).toEqual([
    "Secret istio-system/one: own: is the ID of the control plane's own cluster; choose another key",
    'Secret istio-system/two: a: is already in Secret istio-system/one: a, which applies',
  ]);
});

it.each([
  ['program', { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'id' } }, 'exec'],
  ['token file', { tokenFile: '/var/run/secrets/token' }, 'tokenFile'],
  ['certificate file', { 'client-certificate': '/etc/passwd' }, 'client-certificate'],
  ['key file', { 'client-key': '/etc/shadow' }, 'client-key'],
])('a kubeconfig with a local %s is rejected without repeating values', (_, user, field) => {
  const { clusters, rejectedIds, problems } = namedClusters(
    [secret('s', { a: kubeconfig('', user), b: kubeconfig() })],
    '',
  );
  expect([...clusters.keys()]).toEqual(['b']);
  expect([...rejectedIds]).toEqual(['a']);
  expect(problems.join()).toContain(
    `user: ${field} is allowed only in the file of --kubeconfig, not in a Secret [API_CREDENTIALS_INVALID]`,
  );
  expect(problems.join()).not.toMatch(/passwd|shadow|secrets\/token|command/);
});

it.each([
  ['', 'must be a kubeconfig, is empty'],
  ['x'.repeat(maxKubeconfigBytes + 3), `must have at most ${maxKubeconfigBytes} bytes`],
  ['token: secret-token\n  : [', 'must be YAML'],
  ['[]', 'must be a kubeconfig'],
  // YAML aliases: each line is nine times as large as the previous one.
  [
    `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 11 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`)}]\n`).join('')}`,
    'must be YAML',
  ],
  ['['.repeat(60_000), 'must be YAML'],
])('an invalid kubeconfig is rejected without affecting other keys (%#)', (text, reason) => {
  const { clusters, rejectedIds, problems } = namedClusters([secret('s', { a: text, b: kubeconfig() })], '');
  expect([[...clusters.keys()], [...rejectedIds]]).toEqual([['b'], ['a']]);
  expect(problems).toEqual([expect.stringContaining(`Secret istio-system/s: a: ${reason}`)]);
  expect(problems.join()).not.toContain('secret-token');
});

it('the number of remote clusters is limited, and invalid data is ignored', () => {
  const manyKubeconfigs = Object.fromEntries(
    Array.from({ length: maxRemoteClusters + 2 }, (_, n) => [`c${1_000 + n}`, kubeconfig()]),
  );
  const { clusters, problems } = namedClusters([secret('s', manyKubeconfigs)], '');
  expect([clusters.size, problems.length]).toEqual([maxRemoteClusters, 2]);
  const oddSecrets = [{ metadata: { name: 'odd' }, data: [] }, { metadata: { name: 'none' } }];
  expect(namedClusters(oddSecrets, '')).toMatchObject({ problems: [] });
  expect(namedClusters([{ metadata: { name: 'odd' }, data: { a: 7 } }], '').problems).toEqual([
    'Secret /odd: a: must be a kubeconfig, is empty [API_CREDENTIALS_INVALID]',
  ]);
});

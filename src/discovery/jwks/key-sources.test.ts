import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config/config.ts';
import type { JwtRule, RequestAuthentication } from '../../model/kinds/policies/request-authentication.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { maxSourcesOfMesh, maxSourcesOfNamespace, selectKeySources } from './key-sources.ts';

function naming(namespace: string, name: string, jwtRules: readonly JwtRule[]): Config<RequestAuthentication> {
  return {
    kind: 'RequestAuthentication',
    apiVersion: 'security.istio.io/v1',
    ...{ name, namespace, labels: {}, annotations: {}, resourceVersion: '1', creationTimestamp: 0 },
    spec: { jwtRules },
  };
}

const rules = (tenant: string, count: number): JwtRule[] =>
  Array.from({ length: count }, (_, i) => ({ issuer: '', jwksUri: `https://${tenant}.test/${i}` }));
const select = (...configs: Config<RequestAuthentication>[]) => runToEnd(selectKeySources(configs));

describe('fetched key sets', () => {
  it('are the first key sets of a namespace up to its limit, and objects with other key sets are reported', () => {
    const first = naming('mallory', 'first', rules('a', maxSourcesOfNamespace));
    const secondPolicy = naming('mallory', 'second', rules('b', 3));
    const { sources, addresses, rejectionReasons } = select(
      first,
      secondPolicy,
      naming('bank', 'jwt', rules('bank', 1)),
    );
    expect(sources).toHaveLength(maxSourcesOfNamespace + 1);
    expect(sources.at(-1)).toMatchObject({ source: 'https://bank.test/0', users: ['RequestAuthentication/bank/jwt'] });
    expect([...rejectionReasons.keys()]).toEqual(['RequestAuthentication/mallory/second']);
    expect(rejectionReasons.get('RequestAuthentication/mallory/second')).toContain(
      `${maxSourcesOfNamespace} in its namespace`,
    );
    expect(addresses.has('https://b.test/0')).toBe(false);
  });

  it('are shared fairly between namespaces above the limit of the mesh, so that a namespace with few gets all of them', () => {
    const greedy = Array.from({ length: 20 }, (_, i) =>
      naming(`mallory-${i}`, 'jwt', rules(`mallory-${i}`, maxSourcesOfNamespace)),
    );
    const { sources, rejectionReasons } = select(...greedy, naming('bank', 'jwt', rules('bank', 10)));
    expect(sources).toHaveLength(maxSourcesOfMesh);
    expect(sources.filter(({ source }) => source.startsWith('https://bank.test'))).toHaveLength(10);
    expect(rejectionReasons.size).toBe(20);
    expect(rejectionReasons.get('RequestAuthentication/mallory-0/jwt')).toContain(`${maxSourcesOfMesh} in the mesh`);
  });

  it("include a key set above one namespace's limit if another namespace uses it too", () => {
    const greedy = naming('mallory', 'a', [...rules('a', maxSourcesOfNamespace), ...rules('shared', 1)]);
    const { sources, rejectionReasons } = select(greedy, naming('bank', 'jwt', rules('shared', 1)));
    expect(sources.map(({ source }) => source)).toContain('https://shared.test/0');
    expect(rejectionReasons.size).toBe(0);
  });

  it('have a timeout of at most 30 s, whatever the object specifies', () => {
    const [source] = select(naming('a', 'b', [{ ...rules('a', 1)[0]!, timeoutMs: 3_600_000 }])).sources;
    expect(source?.timeoutMs).toBe(30_000);
  });

  it('are selected in small steps, each for one rule', () => {
    const steps = selectKeySources([naming('a', 'b', rules('a', 50))]);
    let count = 0;
    while (steps.next().done !== true) count++;
    expect(count).toBeGreaterThanOrEqual(100);
  });
});

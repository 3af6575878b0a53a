/** Tests the conversion of policies to Envoy's RBAC rules, for HTTP and for TCP. */
import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type ActionRules, actionRules, type RuleTraffic } from './rbac-rules.ts';

const policy = (spec: string, annotations = '{}'): string => `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: p, namespace: shop, annotations: ${annotations} }
spec: ${spec}
`;

function rulesOf(yaml: string, traffic: RuleTraffic): ActionRules[] {
  const { context: push } = givenMesh(yaml);
  const shape = givenShape({ namespace: 'shop' }, push);
  return actionRules({ shape, push, policies: push.policiesFor(shape) } as never, traffic);
}

/** The permissions and principals of the first rule, as JSON. */
const first = (rules: ActionRules | undefined): string =>
  JSON.stringify(Object.values(rules?.enforced?.policies ?? {})[0]);

const matchesNothing = JSON.stringify({
  permissions: [{ rule: { case: 'notRule', value: { rule: { case: 'any', value: true } } } }],
  principals: [{ identifier: { case: 'notId', value: { identifier: { case: 'any', value: true } } } }],
});

describe('rules for TCP connections', () => {
  const spec = (action: string): string =>
    `{ action: ${action}, rules: [{ to: [{ operation: { methods: [GET], ports: ["80"] } }], when: [{ key: "request.headers[x]", values: [y] }] }] }`;

  it.each(['DENY', 'AUDIT'])('a rule with action %s ignores HTTP fields, and matches more connections', (action) => {
    expect(first(rulesOf(policy(spec(action)), 'bytes')[0])).toBe(
      JSON.stringify({
        permissions: [{ rule: { case: 'destinationPort', value: 80 } }],
        principals: [{ identifier: { case: 'any', value: true } }],
      }),
    );
  });

  it('a rule with action ALLOW and HTTP fields allows no connection', () => {
    expect(first(rulesOf(policy(spec('ALLOW')), 'bytes')[0])).toBe(matchesNothing);
  });
});

it('a header condition "*" matches a header even if it is empty', () => {
  const spec = `{ action: DENY, rules: [{ when: [{ key: "request.headers[x]", values: ["*"] }, { key: "request.headers[y]", notValues: ["*"] }] }] }`;
  const present = (name: string) => ({
    identifier: { case: 'header', value: { name, headerMatchSpecifier: { case: 'presentMatch', value: true } } },
  });
  expect(JSON.parse(first(rulesOf(policy(spec), 'requests')[0])).principals).toEqual([
    {
      identifier: {
        case: 'andIds',
        value: { ids: [present('x'), { identifier: { case: 'notId', value: present('y') } }] },
      },
    },
  ]);
});

describe('dry-run annotation of a policy', () => {
  const tried = (value: string, action = 'DENY') =>
    rulesOf(policy(`{ action: ${action}, rules: [{}] }`, `{ istio.io/dry-run: "${value}" }`), 'requests').map(
      ({ enforced, dryRun }) => ({ enforced: enforced !== undefined, dryRun: dryRun !== undefined }),
    );

  it.each(['true', 'True', 'TRUE', 't', 'T', '1'])('a policy with the annotation %s is not enforced', (value) => {
    expect(tried(value)).toEqual([{ enforced: false, dryRun: true }]);
    expect(tried(value, 'ALLOW')).toEqual([{ enforced: false, dryRun: true }]);
  });

  it.each(['false', 'False', 'FALSE', 'f', 'F', '0'])('a policy with the annotation %s is enforced', (value) => {
    expect(tried(value)).toEqual([{ enforced: true, dryRun: false }]);
  });
});

describe('service account of a source', () => {
  const matches = (account: string, identity: string): boolean => {
    const text = first(
      rulesOf(policy(`{ rules: [{ from: [{ source: { serviceAccounts: ["${account}"] } }] }] }`), 'requests')[0],
    );
    return new RegExp(`^${JSON.parse(/"regex":("(?:[^"\\]|\\.)*")/.exec(text)![1]!) as string}$`).test(identity);
  };

  it.each([
    ['web', 'spiffe://td/ns/shop/sa/web', 'matches'],
    ['web', 'spiffe://td/ns/shop/sa/web/pod/web-1', 'matches'],
    ['web', 'spiffe://td/cluster/c1/ns/shop/sa/web', 'matches'],
    ['web', 'spiffe://td/ns/shop/node/n1/sa/web', 'matches'],
    ['shop/web', 'spiffe://td/ns/shop/sa/web/extra', 'matches'],
    ['web', 'spiffe://td/ns/shop/sa/web-2', 'does not match'],
    ['web', 'spiffe://td/ns/shop/sa/', 'does not match'],
    ['web', 'spiffe://td/ns/shop/sa', 'does not match'],
    ['web', 'spiffe://td/ns/other/sa/web', 'does not match'],
    ['web', 'spiffe://td/ns/shopping/sa/web', 'does not match'],
    ['web', 'spiffe:///ns/shop/sa/web', 'does not match'],
    ['a.b', 'spiffe://td/ns/shop/sa/a-b', 'does not match'],
    ['*/web', 'spiffe://td/ns/other/sa/web/extra', 'matches'],
    ['*/web', 'spiffe://td/ns/other/sa/web2', 'does not match'],
  ])('account $0 $2 identity $1', (account, identity, verb) => {
    expect(matches(account, identity)).toBe(verb === 'matches');
  });
});

import { describe, expect, it } from 'vitest';
import { validateFiles } from '../../config/validation/validate-files.ts';

function object(apiVersion: string, kind: string, name: string, spec: string, namespace = 'shop'): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n---\n`;
}

const deployment = (labels = '{app: web, version: v1}', name = 'web', annotations = '{}'): string =>
  object(
    'apps/v1',
    'Deployment',
    name,
    `{template: {metadata: {labels: ${labels}, annotations: ${annotations}}, spec: {}}}`,
  );
const service = object(
  'v1',
  'Service',
  'web',
  '{clusterIP: 10.96.0.1, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: tcp, port: 90, targetPort: data}]}',
);
const peers = (spec: string, namespace = 'shop'): string =>
  object('security.istio.io/v1', 'PeerAuthentication', 'peers', spec, namespace);
const rule = (spec: string): string =>
  object('networking.istio.io/v1', 'DestinationRule', 'web', `{host: web, ${spec}}`);
const strict = peers('{mtls: {mode: STRICT}}');
const disabled = rule('trafficPolicy: {tls: {mode: DISABLE}}');

async function conflicts(...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems
    .filter(({ code }) => code === 'MTLS_CONFLICT')
    .map(({ object, field, other }) => `${object} ${field}; ${other?.object}`);
}

const at = (field: string): string[] => [`DestinationRule shop/web spec.${field}; PeerAuthentication shop/peers`];
const level = (number: number, mode: string): string => `{port: {number: ${number}}, tls: {mode: ${mode}}}`;

describe('MTLS_CONFLICT of Deployments in files', () => {
  it.each([
    ['at trafficPolicy', disabled, 'trafficPolicy.tls.mode'],
    [
      'at a port level',
      rule(`trafficPolicy: {portLevelSettings: [${level(80, 'DISABLE')}]}`),
      'trafficPolicy.portLevelSettings[0].tls.mode',
    ],
    [
      'at a port level with the number of a container port',
      rule(`trafficPolicy: {portLevelSettings: [${level(90, 'SIMPLE')}]}`),
      'trafficPolicy.portLevelSettings[0].tls.mode',
    ],
    [
      'at trafficPolicy for ports without a port level',
      rule(`trafficPolicy: {tls: {mode: DISABLE}, portLevelSettings: [${level(80, 'ISTIO_MUTUAL')}]}`),
      'trafficPolicy.tls.mode',
    ],
    [
      'at a subset',
      rule('subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {tls: {mode: DISABLE}}}]'),
      'subsets[0].trafficPolicy.tls.mode',
    ],
    [
      'at a port level of a subset',
      rule(
        `subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {portLevelSettings: [${level(80, 'DISABLE')}]}}]`,
      ),
      'subsets[0].trafficPolicy.portLevelSettings[0].tls.mode',
    ],
  ])('is reported %s', async (_, rules, field) => {
    expect(await conflicts(deployment(), service, strict, rules)).toEqual(at(field));
  });

  it('is reported for mutual TLS to a port that accepts only plaintext', async () => {
    const policy = peers('{selector: {matchLabels: {app: web}}, portLevelMtls: {8080: {mode: DISABLE}}}');
    const mutual = (port: number) => rule(`trafficPolicy: {portLevelSettings: [${level(port, 'ISTIO_MUTUAL')}]}`);
    expect(await conflicts(deployment(), service, policy, mutual(80))).toEqual(
      at('trafficPolicy.portLevelSettings[0].tls.mode'),
    );
    expect(await conflicts(deployment(), service, policy, mutual(90))).toEqual([]);
  });

  it('is reported for a policy of the mesh if a sidecar is certainly injected', async () => {
    const meshPolicy = peers('{mtls: {mode: STRICT}}', 'istio-system');
    const expected = ['DestinationRule shop/web spec.trafficPolicy.tls.mode; PeerAuthentication istio-system/peers'];
    const labelled = (labels: string): string =>
      `apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: ${labels}}\n---\n`;
    const injected = '{app: web, sidecar.istio.io/inject: "true"}';
    expect(await conflicts(deployment(injected), service, meshPolicy, disabled)).toEqual(expected);
    for (const labels of ['{istio-injection: enabled}', '{istio.io/rev: default}'])
      expect(await conflicts(labelled(labels), deployment(), service, meshPolicy, disabled)).toEqual(expected);
    expect(await conflicts(deployment(), service, meshPolicy, disabled)).toEqual([]);
    expect(await conflicts(labelled('{istio-injection: disabled}'), deployment(), service, strict, disabled)).toEqual(
      [],
    );
  });
});

describe('MTLS_CONFLICT of a DestinationRule with a wildcard host', () => {
  const wildcardRule = (host: string, namespace = 'shop', extraPolicy = ''): string =>
    object(
      'networking.istio.io/v1',
      'DestinationRule',
      'wide',
      `{host: "${host}", ${extraPolicy}trafficPolicy: {tls: {mode: DISABLE}}}`,
      namespace,
    );
  const reportedConflict = (namespace = 'shop', policy = 'shop/peers'): string[] => [
    `DestinationRule ${namespace}/wide spec.trafficPolicy.tls.mode; PeerAuthentication ${policy}`,
  ];

  it.each(['*.shop.svc.cluster.local', '*.svc.cluster.local', '*.local', '*'])(
    'is reported for the host %s',
    async (host) => {
      expect(await conflicts(deployment(), service, strict, wildcardRule(host))).toEqual(reportedConflict());
    },
  );

  it('is reported if the rule is in another namespace or the root namespace', async () => {
    expect(await conflicts(deployment(), service, strict, wildcardRule('*.local', 'bank'))).toEqual(
      reportedConflict('bank'),
    );
    expect(await conflicts(deployment(), service, strict, wildcardRule('*.local', 'istio-system'))).toEqual(
      reportedConflict('istio-system'),
    );
  });

  it('is reported for mutual TLS to workloads that accept only plaintext', async () => {
    const off = peers('{mtls: {mode: DISABLE}}');
    const mutual = wildcardRule('*.shop.svc.cluster.local').replace('DISABLE', 'ISTIO_MUTUAL');
    expect(await conflicts(deployment(), service, off, mutual)).toEqual(reportedConflict());
  });

  it('is not reported if a narrower rule applies or the wildcard matches no service', async () => {
    const narrower = rule('trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}');
    expect(await conflicts(deployment(), service, strict, narrower, wildcardRule('*.local'))).toEqual([]);
    const narrowerWildcard = wildcardRule('*.shop.svc.cluster.local')
      .replace('name: wide', 'name: own')
      .replace('DISABLE', 'ISTIO_MUTUAL');
    expect(await conflicts(deployment(), service, strict, narrowerWildcard, wildcardRule('*.local'))).toEqual([]);
    // Clients in namespace shop use the rule of their own namespace.
    expect(await conflicts(deployment(), service, strict, narrower, wildcardRule('*.local', 'istio-system'))).toEqual(
      [],
    );
    expect(await conflicts(deployment(), service, strict, wildcardRule('*.bank.svc.cluster.local'))).toEqual([]);
    expect(
      await conflicts(deployment(), service, peers('{mtls: {mode: PERMISSIVE}}'), wildcardRule('*.local')),
    ).toEqual([]);
  });

  it('is reported if the narrower rule applies only to selected clients', async () => {
    const selectingRule = rule(
      'workloadSelector: {matchLabels: {app: web}}, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}',
    );
    expect(await conflicts(deployment(), service, strict, selectingRule, wildcardRule('*.local'))).toEqual(
      reportedConflict(),
    );
  });
});

describe('MTLS_CONFLICT', () => {
  it.each([
    ['the policy is PERMISSIVE', [deployment(), peers('{mtls: {mode: PERMISSIVE}}'), disabled]],
    [
      'the policy selects other workloads',
      [deployment(), peers('{selector: {matchLabels: {app: x}}, mtls: {mode: STRICT}}'), disabled],
    ],
    [
      'the rule uses mutual TLS to workloads that require it',
      [deployment(), strict, rule('trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}')],
    ],
    [
      'each port has a port level without tls',
      [
        deployment(),
        strict,
        rule(
          'trafficPolicy: {tls: {mode: DISABLE}, portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}}, {port: {number: 90}, loadBalancer: {simple: RANDOM}}]}',
        ),
      ],
    ],
    [
      'the subset has other workloads',
      [
        deployment(),
        deployment('{app: web, version: v2, sidecar.istio.io/inject: "false"}', 'plain'),
        strict,
        rule('subsets: [{name: v2, labels: {version: v2}, trafficPolicy: {tls: {mode: DISABLE}}}]'),
      ],
    ],
    [
      'the port accepts plaintext',
      [
        deployment(),
        peers('{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}, portLevelMtls: {8080: {mode: PERMISSIVE}}}'),
        rule(`trafficPolicy: {portLevelSettings: [${level(80, 'DISABLE')}]}`),
      ],
    ],
    [
      'the Pod template disables injection',
      [deployment('{app: web}', 'web', '{sidecar.istio.io/inject: "false"}'), strict, disabled],
    ],
  ])('is not reported if %s', async (_, documents) => {
    expect(await conflicts(service, ...documents)).toEqual([]);
  });
});

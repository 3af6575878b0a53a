import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { document, service, setOf } from '../../../../test/fixtures/given-objects.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { computeGatewayApiStatusInSteps } from './gateway-api-status.ts';

const gateway = (name: string): string =>
  document('Gateway', name, '{gatewayClassName: istio, listeners: [{name: plain, port: 80, protocol: HTTP}]}');
const route = (parent: string): string =>
  document('HTTPRoute', 'cart', `{parentRefs: [{name: ${parent}}], rules: [{backendRefs: [{name: cart, port: 80}]}]}`);
const policy = (validation: string, name = 'tls', metadata = {}): string =>
  document(
    'BackendTLSPolicy',
    name,
    `{targetRefs: [{group: "", kind: Service, name: cart}], validation: {hostname: a.test, ${validation}}}`,
    metadata,
  );
const configMap = (certificate: string): string =>
  `---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca, namespace: shop}\ndata: ${JSON.stringify({ 'ca.crt': certificate })}\n`;
const mesh = gateway('front') + gateway('idle') + route('front') + service('cart');
const system = 'wellKnownCACertificates: System';
const ref = (kind: string, name = 'ca'): string => `{group: "", kind: ${kind}, name: ${name}}`;

function statusOf(yaml: string, name = 'tls'): string[] {
  const { BackendTLSPolicy: statuses } = runToEnd(
    computeGatewayApiStatusInSteps(setOf(yaml, { isLenient: true }), 'cluster.local'),
  );
  return statuses.get(`shop/${name}`)!.parents.map(({ parentRef, conditions }) => {
    const texts = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    return [`${parentRef.kind} ${parentRef.namespace}/${parentRef.name}`, ...texts].join(', ');
  });
}

const at = 'Gateway shop/front';
const resolved = 'ResolvedRefs True ResolvedRefs';
const { certificate } = createAuthority();

describe('the status of a BackendTLSPolicy', () => {
  it("has an entry only for Gateways that route to the policy's Service", () => {
    expect(statusOf(mesh + policy(system))).toEqual([`${at}, Accepted True Accepted, ${resolved}`]);
    expect(statusOf(gateway('front') + service('cart') + policy(system))).toEqual([]);
  });

  it.each<[string, string, string, string]>([
    [`caCertificateRefs: [${ref('ConfigMap')}]`, configMap(certificate), 'Accepted True Accepted', resolved],
    [
      `caCertificateRefs: [${ref('ConfigMap')}, ${ref('ConfigMap', 'gone')}]`,
      configMap(certificate),
      'Accepted True Accepted',
      'ResolvedRefs False InvalidCACertificateRef',
    ],
    [
      `caCertificateRefs: [${ref('ConfigMap')}]`,
      '',
      'Accepted False NoValidCACertificate',
      'ResolvedRefs False InvalidCACertificateRef',
    ],
    [
      `caCertificateRefs: [${ref('ConfigMap')}]`,
      configMap('nonsense'),
      'Accepted False NoValidCACertificate',
      'ResolvedRefs False InvalidCACertificateRef',
    ],
    [
      `caCertificateRefs: [${ref('Secret')}]`,
      '',
      'Accepted False NoValidCACertificate',
      'ResolvedRefs False InvalidKind',
    ],
    ['wellKnownCACertificates: example.com/other', '', 'Accepted False Invalid', resolved],
  ])(
    'reports for %s whether the CA certificates are usable %#',
    (validation, extraYaml, acceptedReason, references) => {
      expect(statusOf(mesh + extraYaml + policy(validation))).toEqual([`${at}, ${acceptedReason}, ${references}`]);
    },
  );

  it('reports a conflict if an older policy has the same target', () => {
    const young = policy(system, 'young', { created: '2024-02-01T00:00:00Z' });
    const oldPolicy = policy(system, 'zold', { created: '2024-01-01T00:00:00Z' });
    expect(statusOf(mesh + young + oldPolicy, 'young')).toEqual([`${at}, Accepted False Conflicted, ${resolved}`]);
    expect(statusOf(mesh + young + oldPolicy, 'zold')).toEqual([`${at}, Accepted True Accepted, ${resolved}`]);
  });

  it('reports an invalid policy, whose requests are rejected with 503', () => {
    expect(statusOf(mesh + policy('crl: list'))).toEqual([`${at}, Accepted False Invalid, ${resolved}`]);
  });
});

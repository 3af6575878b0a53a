import { describe, expect, it } from 'vitest';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { ReferenceGrants } from '../../model/push-context/reference-grants.ts';
import { grantedCredentials } from './granted-credentials.ts';

describe('Secrets for Gateways in other namespaces', () => {
  const certificateRefs = [
    { group: '', kind: 'Secret', name: 'web', namespace: 'certs' },
    { group: '', kind: 'Secret', name: 'other', namespace: 'certs' },
    { group: '', kind: 'Secret', name: 'web' },
    { group: '', kind: 'ConfigMap', name: 'web', namespace: 'certs' },
    { group: '', kind: 'Secret', name: 'web', namespace: 'victim' },
  ];
  const gateway = givenObject('KubernetesGateway', 'edge', 'front', { listeners: [{ tls: { certificateRefs } }, {}] });
  const grant = (to: object): ReferenceGrants =>
    new ReferenceGrants([
      givenObject('ReferenceGrant', 'certs', 'g', {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'edge' }],
        to: [{ group: '', kind: 'Secret', ...to }],
      }) as never,
    ]);
  const readBy = (grants: ReferenceGrants): string[] =>
    grantedCredentials([gateway as never], grants).map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);

  it('Secrets are read if a ReferenceGrant covers them', () => {
    expect(readBy(grant({ name: 'web' }))).toEqual(['Secret certs/web']);
    expect(readBy(grant({}))).toEqual(['Secret certs/web', 'Secret certs/other']);
  });

  it("Secrets without a grant are not read, so that a tenant cannot exhaust another namespace's references", () => {
    expect(readBy(ReferenceGrants.empty)).toEqual([]);
  });
});

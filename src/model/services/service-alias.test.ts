import { describe, expect, it } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { aliasesByTarget, aliasTarget } from './service-alias.ts';

function alias(name: string, of: string): string {
  return `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { type: ExternalName, externalName: ${of} }
---`;
}

const web = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.0.1, ports: [{ name: http, port: 80 }] }
---`;

const domain = 'shop.svc.cluster.local';

function aliasTargetOf(yaml: string, name: string): string | undefined {
  const { context } = givenMesh(yaml);
  const find = (host: string) => context.serviceFor(host, 'shop');
  return aliasTarget(find(`${name}.${domain}`), find)?.hostname;
}

describe('a service alias', () => {
  it('resolves to the service that it names, even through other aliases', () => {
    const mesh = web + alias('one', `web.${domain}.`) + alias('two', `one.${domain}`);
    expect(aliasTargetOf(mesh, 'one')).toBe(`web.${domain}`);
    expect(aliasTargetOf(mesh, 'two')).toBe(`web.${domain}`);
    expect(aliasTargetOf(mesh, 'web')).toBe(`web.${domain}`);
  });

  it('does not resolve if its target is outside the mesh or refers back to it', () => {
    expect(aliasTargetOf(alias('one', 'www.example.com'), 'one')).toBeUndefined();
    expect(aliasTargetOf(alias('one', `two.${domain}`) + alias('two', `one.${domain}`), 'one')).toBeUndefined();
  });

  it('is listed under its target', () => {
    const { context } = givenMesh(web + alias('one', `web.${domain}`) + alias('lost', 'nowhere.test'));
    const aliases = aliasesByTarget(context.services, (host) => context.serviceFor(host, 'shop'));
    expect([...aliases].map(([host, names]) => [host, names.map(({ hostname }) => hostname)])).toEqual([
      [`web.${domain}`, [`one.${domain}`]],
    ]);
  });
});

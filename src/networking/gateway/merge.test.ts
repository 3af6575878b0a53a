import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../model/given-mesh.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import type { ServiceTarget } from '../../model/service.ts';
import { type MergedGateways, mergeGateways } from './merge.ts';

function gateway(name: string, servers: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: ${name} }
spec: { selector: {}, servers: ${servers} }
---`;
}

const tls = 'tls: { mode: SIMPLE, serverCertificate: /c, privateKey: /k }';

function merge(yaml: string, about: Partial<ProxyShape> = {}): MergedGateways {
  return mergeGateways({ ...givenShape({ type: 'router' }), ...about }, givenMesh(yaml).context);
}

describe('gateways of one proxy', () => {
  it('share plain HTTP ports, and the routes of them', () => {
    const merged = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: [a.test] }]') +
        gateway('b', '[{ port: { number: 80, name: http, protocol: HTTP2 }, hosts: [b.test] }]'),
    );
    expect(merged.ports).toHaveLength(1);
    expect(merged.routes.get('http.80')?.map(({ gateway }) => gateway.name)).toEqual(['a', 'b']);
  });

  it('share TLS ports host by host: a name that an older server has is left out', () => {
    const merged = merge(
      gateway('a', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [a.test], ${tls} }]`) +
        gateway('b', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [a.test, b.test], ${tls} }]`) +
        gateway('c', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [b.test], ${tls} }]`),
    );
    expect(merged.ports[0]?.servers.map(({ hosts }) => hosts)).toEqual([['a.test'], ['b.test']]);
    expect([...merged.routes.keys()]).toEqual(['https.443.https.a.default', 'https.443.https.b.default']);
    expect(merged.rejected).toEqual([expect.stringMatching(/default\/c server https: all its hosts are taken/)]);
  });

  it('reject a server of another kind on a taken port, and say who has it', () => {
    const merged = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]') +
        gateway('b', '[{ port: { number: 80, name: tcp, protocol: TCP }, hosts: ["*"] }]'),
    );
    expect(merged.ports.map(({ kind }) => kind)).toEqual(['http']);
    expect(merged.rejected).toEqual([expect.stringContaining('port 80 is taken by a http server of default/a')]);
  });

  it('are kept apart by the address that they bind', () => {
    const merged = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, bind: 127.0.0.1, hosts: ["*"] }]') +
        gateway('b', '[{ port: { number: 80, name: tcp, protocol: TCP }, hosts: ["*"] }]'),
    );
    expect(merged.ports).toHaveLength(2);
    expect([...merged.routes.keys()]).toEqual(['http.80.127.0.0.1']);
  });

  it('listen where their Kubernetes Service leads, and nowhere that the pod may not', () => {
    const yaml = gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]');
    const target = (registry: string): ServiceTarget =>
      ({ service: { registry }, port: { number: 80 }, targetPort: 8080 }) as ServiceTarget;
    expect(merge(yaml, { serviceTargets: [target('Kubernetes')] }).ports[0]?.port).toBe(8080);
    expect(merge(yaml, { serviceTargets: [target('External')] }).ports[0]?.port).toBe(80);
    const unprivileged = merge(yaml, { metadata: { UNPRIVILEGED_POD: 'true' } });
    expect(unprivileged.ports).toEqual([]);
    expect(unprivileged.rejected).toHaveLength(1);
  });
});

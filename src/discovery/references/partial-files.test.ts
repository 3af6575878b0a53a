import { describe, expect, it } from 'vitest';
import { warningTable } from '../../runtime/errors.ts';
import { validateFiles } from '../config/validation/validate-files.ts';

async function warningsAndNotes(...documents: string[]): Promise<{ warnings: string[]; notes: readonly string[] }> {
  const { problems, notes } = await validateFiles([], [{ file: 'mesh.yaml', text: documents.join('---\n') }]);
  const warnings = problems.filter(({ code = '' }) => code in warningTable);
  return { warnings: warnings.map(({ code, object }) => `${code} ${object}`), notes };
}

const object = (kind: string, name: string, spec: string, namespace = 'shop'): string =>
  `apiVersion: ${kind === 'Service' ? 'v1' : kind === 'PeerAuthentication' ? 'security.istio.io/v1' : 'networking.istio.io/v1'}
kind: ${kind}
metadata: {name: ${name}, namespace: ${namespace}}
spec: ${spec}
`;

describe("validate of files without the cluster's objects", () => {
  it.each([
    [
      'a route to a host of another namespace',
      object(
        'VirtualService',
        'v',
        '{hosts: [a], http: [{route: [{destination: {host: a.other.svc.cluster.local}}]}]}',
      ),
      'Service objects of namespace other',
    ],
    [
      'a route to an external host',
      object('VirtualService', 'v', '{hosts: [a.test], http: [{route: [{destination: {host: a.test}}]}]}'),
      'ServiceEntry objects',
    ],
    [
      'routes at a gateway of another namespace',
      object('VirtualService', 'v', '{hosts: [a.test], gateways: [edge/g], http: [{redirect: {uri: /}}]}'),
      'Gateway objects of namespace edge',
    ],
    [
      'a delegate of another namespace',
      object('VirtualService', 'v', '{hosts: [a.test], http: [{delegate: {name: d, namespace: other}}]}'),
      'VirtualService objects of namespace other',
    ],
    [
      'a credential',
      object(
        'Gateway',
        'g',
        '{selector: {a: b}, servers: [{port: {number: 443, name: s, protocol: HTTPS}, hosts: [a.test], tls: {mode: SIMPLE, credentialName: c}}]}',
      ),
      'Secret objects',
    ],
    [
      'a policy with a selector',
      object('PeerAuthentication', 'p', '{selector: {matchLabels: {app: a}}, mtls: {mode: STRICT}}'),
      'Pod objects of namespace shop',
    ],
  ])('does not report %s', async (_, yaml, unchecked) => {
    const { warnings, notes } = await warningsAndNotes(yaml);
    expect(warnings).toEqual([]);
    expect(notes).toContainEqual(expect.stringContaining(`references to ${unchecked} are not checked`));
  });
});

const tcp = (name: string, address: string): string =>
  object(
    'ServiceEntry',
    name,
    `{hosts: [${name}.test], ${address} location: MESH_EXTERNAL, resolution: DNS, ports: [{number: 3306, name: tcp, protocol: TCP}]}`,
  );

describe('validate of services on one port', () => {
  it.each([
    [
      'if each TCP service has its own address',
      `${tcp('a', 'addresses: [10.0.0.1],')}---\n${tcp('b', 'addresses: [10.0.0.2],')}`,
    ],
    [
      'if the services are headless',
      object('Service', 'a', '{clusterIP: None, selector: {app: a}, ports: [{port: 9092, name: tcp}]}') +
        '---\n' +
        object('Service', 'b', '{clusterIP: None, selector: {app: b}, ports: [{port: 9092, name: tcp}]}'),
    ],
    [
      'if TLS hosts without an address are distinguished by SNI',
      [tcp('a', ''), tcp('b', '')].join('---\n').replaceAll('name: tcp, protocol: TCP', 'name: tls, protocol: TLS'),
    ],
    [
      'if no namespace sees both',
      tcp('a', 'exportTo: ["."],') +
        '---\n' +
        tcp('b', 'exportTo: [other],').replace('namespace: shop', 'namespace: other'),
    ],
    ['if the hosts are equal', `${tcp('a', '')}---\n${tcp('b', '').replace('b.test', 'a.test')}`],
  ])('does not report a conflict %s', async (_, yaml) => {
    expect((await warningsAndNotes(yaml)).warnings).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { ServiceTarget } from '../../model/services/service.ts';
import { type MergedGateways, mergeGateways } from './merge-gateways.ts';

function gateway(name: string, servers: string, namespace = 'default'): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: ${name}, namespace: ${namespace} }
spec: { selector: {}, servers: ${servers} }
---`;
}

const tls = 'tls: { mode: SIMPLE, serverCertificate: /c, privateKey: /k }';

function merge(yaml: string, overrides: Partial<ProxyShape> = {}): MergedGateways {
  return mergeGateways({ ...givenShape({ type: 'router' }), ...overrides }, givenMesh(yaml).context);
}

describe('Gateway servers on the same proxy', () => {
  it('servers share HTTP ports and their routes', () => {
    const mergedGateways = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: [a.test] }]') +
        gateway('b', '[{ port: { number: 80, name: http, protocol: HTTP2 }, hosts: [b.test] }]'),
    );
    expect(mergedGateways.ports).toHaveLength(1);
    expect(mergedGateways.routes.get('http.80')?.map(({ gateway }) => gateway.name)).toEqual(['a', 'b']);
  });

  it('servers share TLS ports by host, and a younger server does not receive the hosts of an older one', () => {
    const mergedGateways = merge(
      gateway('a', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [a.test], ${tls} }]`) +
        gateway('b', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [a.test, b.test], ${tls} }]`) +
        gateway('c', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [b.test], ${tls} }]`),
    );
    expect(mergedGateways.ports[0]?.servers.map(({ hosts }) => hosts)).toEqual([['a.test'], ['b.test']]);
    expect([...mergedGateways.routes.keys()]).toEqual(['https.443.https.a.default', 'https.443.https.b.default']);
    expect(mergedGateways.rejectionMessages).toEqual([
      'Gateway/default/b server https: a.test is served by default/a on port 443',
      'Gateway/default/c server https: b.test is served by default/b on port 443',
    ]);
  });

  it('an HTTPS server is rejected if another server has the same route configuration name, and the reason names that server', () => {
    const server = (name: string, host: string): string =>
      `[{ port: { number: 443, name: ${name}, protocol: HTTPS }, hosts: [${host}], ${tls} }]`;
    const mergedGateways = merge(gateway('a', server('x.y', 'a.test')) + gateway('y.a', server('x', 'b.test')));
    expect(mergedGateways.rejectionMessages).toEqual([
      expect.stringContaining('an HTTPS server of default/a has the same port name'),
    ]);
  });

  it('servers share hosts case-insensitively, because SNI is case-insensitive and Envoy rejects duplicate chains', () => {
    const mergedGateways = merge(
      gateway('a', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [A.Test], ${tls} }]`) +
        gateway('b', `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [a.TEST], ${tls} }]`),
    );
    expect(mergedGateways.ports[0]?.servers.map(({ hosts }) => hosts)).toEqual([['a.test']]);
    expect(mergedGateways.rejectionMessages).toEqual([
      'Gateway/default/b server https: a.test is served by default/a on port 443',
    ]);
  });

  describe('two TLS servers with the same host and different client requirements (istio 13717)', () => {
    const server = (mode: string, hosts: string): string => {
      const files = mode === 'PASSTHROUGH' ? '' : ', serverCertificate: /c, privateKey: /k';
      const roots = mode.endsWith('MUTUAL') ? ', caCertificates: /ca' : '';
      const port = '{ port: { number: 443, name: https, protocol: HTTPS }';
      return `[${port}, hosts: [${hosts}], tls: { mode: ${mode}${files}${roots} } }]`;
    };
    const gatewayByHost = (yaml: string): Record<string, string> =>
      Object.fromEntries(
        merge(yaml).ports.flatMap(({ servers }) =>
          servers.flatMap(({ hosts, gateway: { name } }) => hosts.map((host) => [host, name])),
        ),
      );

    it.each([
      ['SIMPLE', 'MUTUAL', 'younger'],
      ['SIMPLE', 'OPTIONAL_MUTUAL', 'younger'],
      ['OPTIONAL_MUTUAL', 'MUTUAL', 'younger'],
      ['MUTUAL', 'SIMPLE', 'older'],
      ['MUTUAL', 'MUTUAL', 'older'],
      ['PASSTHROUGH', 'MUTUAL', 'older'],
    ])(
      'of an older server with mode %s and a younger one with mode %s in one namespace, the %s one gets the host',
      (olderTls, younger, winner) => {
        const owner = winner === 'older' ? 'g1' : 'g2';
        const yaml = gateway('g1', server(olderTls, 'x.test')) + gateway('g2', server(younger, 'x.test, y.test'));
        expect(gatewayByHost(yaml)).toEqual({ 'x.test': owner, 'y.test': 'g2' });
        const [rejectedServer] = merge(yaml).rejectionMessages;
        const [loser, other] = owner === 'g1' ? ['g2', 'g1'] : ['g1', 'g2'];
        expect(rejectedServer).toContain(
          `Gateway/default/${loser} server https: x.test is served by default/${other} on port 443`,
        );
      },
    );

    it('the oldest server gets the host if the namespaces differ, and its weaker requirements are reported', () => {
      const yaml =
        gateway('g1', server('SIMPLE', 'x.test'), 'bank') +
        gateway('g2', server('MUTUAL', 'x.test, y.test'), 'mallory');
      expect(gatewayByHost(yaml)).toEqual({ 'x.test': 'g1', 'y.test': 'g2' });
      expect(merge(yaml).rejectionMessages).toEqual([
        'Gateway/mallory/g2 server https: x.test is served by bank/g1 on port 443, with mode SIMPLE instead of MUTUAL',
      ]);
    });
  });

  describe('TLS servers with different requirements', () => {
    const server = (hosts: string, tls: string): string =>
      `[{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [${hosts}], tls: { serverCertificate: /c, privateKey: /k, ${tls} } }]`;
    const mergeTwo = (olderTls: string, younger: string): MergedGateways =>
      merge(gateway('g1', server('x.test', olderTls)) + gateway('g2', server('x.test, y.test', younger)));
    const mutual = 'mode: MUTUAL, caCertificates: /ca';

    it.each([
      ['a newer TLS version', 'mode: SIMPLE', 'mode: SIMPLE, minProtocolVersion: TLSV1_3'],
      [
        'an explicit default TLS version',
        'mode: SIMPLE, minProtocolVersion: TLSV1_2',
        'mode: SIMPLE, minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_2',
      ],
      ['fewer cipher suites', 'mode: SIMPLE', 'mode: SIMPLE, cipherSuites: [ECDHE-RSA-AES256-GCM-SHA384]'],
      ['client names', mutual, `${mutual}, subjectAltNames: [a.test]`],
      ['fewer client names', `${mutual}, subjectAltNames: [a.test, b.test]`, `${mutual}, subjectAltNames: [b.test]`],
      ['pinned keys', mutual, `${mutual}, verifyCertificateSpki: [${btoa('k'.repeat(32))}]`],
      ['pinned certificates', mutual, `${mutual}, verifyCertificateHash: [${'a'.repeat(64)}]`],
      ['a revocation list', mutual, `${mutual}, caCrl: /crl`],
      ['an HTTPS redirect', 'mode: SIMPLE', 'mode: SIMPLE, httpsRedirect: true'],
    ])('the stricter server gets the shared host, regardless of age: %s', (_, wideTls, strict) => {
      const hosts = ({ ports }: MergedGateways) =>
        ports[0]!.servers.map(({ gateway: { name }, hosts: ownHosts }) => `${name}: ${ownHosts}`);
      expect(hosts(mergeTwo(wideTls, strict))).toEqual(['g2: x.test,y.test']);
      expect(hosts(mergeTwo(strict, wideTls))).toEqual(['g1: x.test', 'g2: y.test']);
      const [rejectedServer] = mergeTwo(strict, wideTls).rejectionMessages;
      expect(rejectedServer).toBe('Gateway/default/g2 server https: x.test is served by default/g1 on port 443');
    });

    it('the shared host has the requirements of both servers and a separate route configuration', () => {
      const mergedGateways = mergeTwo('mode: SIMPLE, minProtocolVersion: TLSV1_3, httpsRedirect: true', mutual);
      const mergedServers = mergedGateways.ports[0]!.servers;
      expect(mergedServers.map(({ hosts, routeName, server: { tls } }) => [hosts, routeName, tls])).toEqual([
        [
          ['x.test'],
          'https.443.https.g2.default.x.test',
          expect.objectContaining({ mode: 'MUTUAL', minProtocolVersion: 'TLSV1_3', httpsRedirect: true }),
        ],
        [['y.test'], 'https.443.https.g2.default', expect.not.objectContaining({ minProtocolVersion: 'TLSV1_3' })],
      ]);
      expect(mergedGateways.rejectionMessages).toEqual([
        'Gateway/default/g1 server https: x.test is served by default/g2 on port 443',
      ]);
      expect(mergedGateways.overlapMessages).toEqual([
        'Gateway/default/g2 server https: x.test: the requirements of all servers of the namespace apply, this one has minProtocolVersion TLSV1_2 instead of TLSV1_3, httpsRedirect false instead of true',
      ]);
    });

    it.each([
      ['subjectAltNames', `${mutual}, subjectAltNames: [a.test]`, `${mutual}, subjectAltNames: [b.test]`],
      [
        'digest',
        `${mutual}, verifyCertificateSpki: [${btoa('k'.repeat(32))}]`,
        `${mutual}, verifyCertificateHash: [${'a'.repeat(64)}]`,
      ],
      [
        'TLS version',
        'mode: SIMPLE, minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_2',
        'mode: SIMPLE, minProtocolVersion: TLSV1_3',
      ],
      [
        'cipher suite',
        'mode: SIMPLE, minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-RSA-AES256-GCM-SHA384]',
        'mode: SIMPLE, minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]',
      ],
    ])(
      'a host is closed and reported by both servers if no client can satisfy both requirements: %s',
      (description, olderTls, younger) => {
        const { ports, rejectionMessages, overlapMessages } = mergeTwo(olderTls, younger);
        expect(
          ports[0]!.servers.map(({ hosts, closedReason, routeName }) => [hosts, closedReason === undefined, routeName]),
        ).toEqual([
          [['x.test'], false, undefined],
          [['y.test'], true, 'https.443.https.g2.default'],
        ]);
        for (const [text] of [rejectionMessages, overlapMessages])
          expect(text).toMatch(new RegExp(`x.test.*closed, because no .*${description}`));
      },
    );

    it('the older server gets a host with two different CAs, and the younger server reports this', () => {
      const { ports, rejectionMessages } = mergeTwo(mutual, 'mode: MUTUAL, caCertificates: /other');
      expect(ports[0]!.servers.map(({ gateway: { name } }) => name)).toEqual(['g1', 'g2']);
      expect(rejectionMessages).toEqual([
        'Gateway/default/g2 server https: x.test is served by default/g1 on port 443, with client authority /ca instead of /other',
      ]);
    });

    it('mesh defaults apply to servers without their own settings', () => {
      const push = givenMesh(
        gateway('g1', server('x.test', 'mode: SIMPLE, minProtocolVersion: TLSV1_2')) +
          gateway('g2', server('x.test', 'mode: SIMPLE')),
      ).context;
      const shape = givenShape({ type: 'router' });
      const of = (mesh: object): string | undefined => {
        const { gatewaysFor } = push;
        const context = { gatewaysFor: gatewaysFor.bind(push), mesh: { ...push.mesh, ...mesh } };
        return mergeGateways(shape, context).ports[0]?.servers[0]?.gateway.name;
      };
      expect(of({})).toBe('g1');
      expect(of({ tlsDefaults: { minProtocolVersion: 'TLSV1_3' } })).toBe('g2');
      expect(of({})).toBe('g1');
    });

    it('a wildcard does not serve a host of a stricter server, and both servers report this', () => {
      const pair = (wideTls: string, narrow: string): MergedGateways =>
        merge(
          gateway('w', server('"*.x.test"', wideTls)) + gateway('n', server('a.x.test, b.x.test', narrow), 'other'),
        );
      const misdirected = ({ ports }: MergedGateways) =>
        ports[0]!.servers.map((one) => [...(one.misdirected?.keys() ?? [])]);
      const closedPair = pair('mode: SIMPLE', mutual);
      expect(misdirected(closedPair)).toEqual([['a.x.test', 'b.x.test'], []]);
      expect(closedPair.overlapMessages).toEqual([
        'Gateway/default/w server https: requests for a.x.test and 1 more host get 421 over connections of this server, which has mode SIMPLE instead of MUTUAL of other/n',
      ]);
      const excepted = pair(mutual, 'mode: SIMPLE');
      expect(misdirected(excepted)).toEqual([[], []]);
      expect(excepted.overlapMessages).toEqual([
        'Gateway/other/n server https: a.x.test and 1 more host: served with mode SIMPLE instead of MUTUAL, which default/w requires for *.x.test',
      ]);
      const alike = pair('mode: SIMPLE', 'mode: SIMPLE, minProtocolVersion: TLSV1_2');
      expect([misdirected(alike), alike.overlapMessages]).toEqual([[[], []], []]);
    });

    it('narrower wildcards and TLS passthrough servers are also compared, but AUTO_PASSTHROUGH servers are not', () => {
      const wildcardServer = (mode: string): string =>
        `[{ port: { number: 443, name: tls, protocol: TLS }, hosts: ["*.y.x.test"], tls: { mode: ${mode} } }]`;
      const of = (mode: string) =>
        merge(gateway('w', server('"*"', 'mode: SIMPLE')) + gateway('n', wildcardServer(mode))).ports[0]!.servers[0]!;
      expect([...of('PASSTHROUGH').misdirected!.keys()]).toEqual(['*.y.x.test']);
      expect(of('AUTO_PASSTHROUGH').misdirected).toBeUndefined();
    });

    it('an HTTP host is reported if it does not redirect to HTTPS although its wildcard does', () => {
      const http = (host: string, redirect: boolean): string =>
        `[{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["${host}"]${redirect ? ', tls: { httpsRedirect: true }' : ''} }]`;
      const { overlapMessages, rejectionMessages } = merge(
        gateway('w', http('*.x.test', true)) + gateway('n', http('a.x.test', false)),
      );
      expect(rejectionMessages).toEqual([]);
      expect(overlapMessages).toEqual([
        'Gateway/default/n server http: a.x.test: served with httpsRedirect false instead of true, which default/w requires for *.x.test',
      ]);
    });

    it('a report lists three overlaps and counts the others', () => {
      const narrow = Array.from({ length: 5 }, (_, i) => gateway(`n${i}`, server(`a${i}.x.test`, mutual)));
      const { overlapMessages } = merge(gateway('w', server('"*.x.test"', 'mode: SIMPLE')) + narrow.join(''));
      expect(overlapMessages[0]).toMatch(/a0\.x\.test.*a1\.x\.test.*a2\.x\.test.*; 2 more such overlaps$/);
    });
  });

  it('a server of another type on an occupied port is rejected, and the reason names the server that has the port', () => {
    const mergedGateways = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]') +
        gateway('b', '[{ port: { number: 80, name: tcp, protocol: TCP }, hosts: ["*"] }]'),
    );
    expect(mergedGateways.ports.map(({ kind }) => kind)).toEqual(['http']);
    expect(mergedGateways.rejectionMessages).toEqual([
      expect.stringContaining('port 80 is used by a http server of default/a'),
    ]);
  });

  it('servers with different bind addresses have separate listeners', () => {
    const mergedGateways = merge(
      gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, bind: 127.0.0.1, hosts: ["*"] }]') +
        gateway('b', '[{ port: { number: 80, name: tcp, protocol: TCP }, hosts: ["*"] }]'),
    );
    expect(mergedGateways.ports).toHaveLength(2);
    expect([...mergedGateways.routes.keys()]).toEqual(['http.80.127.0.0.1']);
  });

  it('a server with a wildcard address shares the port with a server without an address', () => {
    const unsaid = gateway('a', '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: [a.test] }]');
    const boundGateway = (address: string): string =>
      gateway('b', `[{ port: { number: 80, name: http, protocol: HTTP }, bind: "${address}", hosts: [b.test] }]`);
    const names = (yaml: string, ipFamily: ProxyShape['ipFamily']): Record<string, string[]> => {
      const { ports, routes } = merge(yaml, { ipFamily });
      expect(ports).toHaveLength(routes.size);
      return Object.fromEntries([...routes].map(([name, servers]) => [name, servers.map((one) => one.gateway.name)]));
    };
    expect(names(unsaid + boundGateway('0.0.0.0'), 'v4')).toEqual({ 'http.80': ['a', 'b'] });
    expect(names(boundGateway('0.0.0.0') + unsaid, 'v4')).toEqual({ 'http.80': ['b', 'a'] });
    expect(names(unsaid + boundGateway('::'), 'v6')).toEqual({ 'http.80': ['a', 'b'] });
    expect(names(unsaid + boundGateway('::'), 'dual')).toEqual({ 'http.80': ['a', 'b'] });
    expect(names(unsaid + boundGateway('::'), 'v4')).toEqual({ 'http.80': ['a'], 'http.80.::': ['b'] });
    expect(names(boundGateway('0.0.0.0'), 'v4')).toEqual({ 'http.80.0.0.0.0': ['b'] });
    const tcp = boundGateway('0.0.0.0').replace('protocol: HTTP', 'protocol: TCP');
    expect(merge(unsaid + tcp).rejectionMessages).toEqual([
      expect.stringContaining('port 80 is used by a http server'),
    ]);
  });

  const oneServer = '[{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]';
  const target = (hostname: string, targetPort: number, labels: object = {}): ServiceTarget =>
    ({ service: { hostname, namespace: 'default', labels }, port: { number: 80 }, targetPort }) as ServiceTarget;
  const portsOf = ({ ports }: MergedGateways): number[] => ports.map(({ port }) => port);

  it('a gateway listens on the distinct target ports of its services', () => {
    const yaml = gateway('a', oneServer);
    const serviceTargets = [target('a.test', 8080), target('b.test', 8081), target('c.test', 8080)];
    expect(portsOf(merge(yaml, { serviceTargets }))).toEqual([8080, 8081]);
    expect(portsOf(merge(yaml, { serviceTargets: [] }))).toEqual([80]);
  });

  it("a gateway listens on the server's port if port translation is disabled for the only matching service", () => {
    const unfollowed = target('a.test', 8080, { 'experimental.istio.io/disable-gateway-port-translation': 'true' });
    expect(portsOf(merge(gateway('a', oneServer), { serviceTargets: [unfollowed] }))).toEqual([80]);
    expect(portsOf(merge(gateway('a', oneServer), { serviceTargets: [unfollowed, target('b.test', 8081)] }))).toEqual([
      8081,
    ]);
  });

  it('a Gateway that names its services listens only on their target ports', () => {
    const servers = [80, 81].map((number) => {
      return `{ port: { number: ${number}, name: http-${number}, protocol: HTTP }, hosts: ["*"] }`;
    });
    const annotated = 'name: a, annotations: { internal.istio.io/gateway-service: "a.test,b.test" }';
    const annotatedGateway = gateway('a', `[${servers}]`).replace('name: a', annotated);
    const serviceTargets = [target('a.test', 8080), target('other.test', 8081)];
    expect(portsOf(merge(annotatedGateway, { serviceTargets }))).toEqual([8080]);
  });

  it('an ISTIO_MUTUAL server is closed and reported if the proxy has no workload certificates', () => {
    const yaml = gateway(
      'a',
      '[{ port: { number: 443, name: tls, protocol: HTTPS }, hosts: ["*"], tls: { mode: ISTIO_MUTUAL } }]',
    );
    const withoutCertificates = merge(yaml);
    expect(withoutCertificates.ports[0]?.servers).toMatchObject([
      { closedReason: expect.stringContaining('requires workload certificates') },
    ]);
    expect([...withoutCertificates.routes]).toEqual([]);
    expect(withoutCertificates.rejectionMessages).toEqual([expect.stringContaining('requires workload certificates')]);
    const withCertificates = merge(yaml, { metadata: { WORKLOAD_CERTIFICATES: 'true' } });
    expect(withCertificates.ports[0]?.servers[0]).not.toHaveProperty('closed');
    expect(withCertificates.rejectionMessages).toEqual([]);
  });

  it('a gateway does not listen on ports that the pod cannot bind', () => {
    const yaml = gateway('a', oneServer);
    const unprivileged = merge(yaml, { metadata: { UNPRIVILEGED_POD: 'true' } });
    expect(unprivileged.ports).toEqual([]);
    expect(unprivileged.rejectionMessages).toHaveLength(1);
  });

  it('gateways are merged once for all callers, and again after a change', () => {
    const yaml = gateway('a', oneServer);
    const previous = givenMesh(yaml);
    const shape = givenShape({ type: 'router' });
    const mergedGateways = mergeGateways(shape, previous.context);
    expect(mergeGateways(shape, previous.context)).toBe(mergedGateways);
    const route = { kind: 'VirtualService', namespace: 'default', name: 'v' };
    const nextMesh = givenMesh(yaml, { previous: { ...previous, changed: [route] } });
    expect(nextMesh.context).not.toBe(previous.context);
    expect(mergeGateways(shape, nextMesh.context)).toBe(mergedGateways);
    const gatewayKey = { kind: 'Gateway', namespace: 'default', name: 'b' };
    const last = givenMesh(yaml + gateway('b', oneServer), { previous: { ...nextMesh, changed: [gatewayKey] } });
    expect(mergeGateways(shape, last.context).routes.get('http.80')).toHaveLength(2);
  });
});

import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import type { Cluster } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { FilterChain } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import { buildClusters, buildListeners } from '../../index.ts';
import { originsOf } from '../../inputs/message-origin.ts';

const web = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 8080 }, { number: 90, name: any }]
  endpoints: [{ address: 10.0.0.9, labels: { app: web } }]
---`;

function policy(spec: string): string {
  return `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: web, namespace: shop }
spec: ${spec}
---`;
}

function sidecar(ingress: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: web, namespace: shop }
spec: { ingress: ${ingress} }
---`;
}

const withAgent = { ISTIO_VERSION: '1.30.0' };

function built(yaml: string, node: GivenNode = {}, meshConfig = '') {
  const { context } = givenMesh(yaml, meshConfig === '' ? {} : { meshConfig });
  const nodeFields = { ip: '10.0.0.9', namespace: 'shop', labels: { app: 'web' }, metadata: withAgent, ...node };
  const shape = givenShape(nodeFields, context);
  const listeners = buildListeners(shape, context).map(({ message }) => message as Listener);
  const clusters = buildClusters(shape, context).map(({ message }) => message as Cluster);
  return { listeners, clusters, virtual: listeners.find(({ name }) => name === 'virtualInbound')! };
}

/** Returns `PORT TRANSPORT NUMBER_OF_ALPNS → NAME` for each chain, and whether it terminates TLS. */
function chains({ filterChains }: Listener): string[] {
  return filterChains.slice(1).map(({ name, filterChainMatch: match, transportSocket }) => {
    const { destinationPort = '*', transportProtocol, applicationProtocols } = match!;
    return `${destinationPort} ${transportProtocol} ${applicationProtocols.length} → ${name}${transportSocket ? ' TLS' : ''}`;
  });
}

describe('virtual inbound listener', () => {
  it('the listener has its passthrough chains before its chains by port', () => {
    expect(chains(built(web + policy('{ mtls: { mode: STRICT } }')).virtual)).toEqual([
      '* tls 3 → virtualInbound-catchall-http TLS',
      '* tls 0 → virtualInbound TLS',
      '90 tls 3 → 0.0.0.0_90 TLS',
      '90 tls 0 → 0.0.0.0_90 TLS',
      '8080 tls 0 → 0.0.0.0_8080 TLS',
    ]);
  });

  it('the listener has separate chains for ports that a policy names but no service has', () => {
    const ports = '{ 7000: { mode: DISABLE }, 8080: { mode: DISABLE } }';
    const spec = `{ selector: { matchLabels: { app: web } }, mtls: { mode: STRICT }, portLevelMtls: ${ports} }`;
    expect(chains(built(web + policy(spec)).virtual)).toEqual([
      '* tls 3 → virtualInbound-catchall-http TLS',
      '* tls 0 → virtualInbound TLS',
      '7000 raw_buffer 2 → virtualInbound-catchall-http',
      '7000 raw_buffer 0 → virtualInbound',
      '90 tls 3 → 0.0.0.0_90 TLS',
      '90 tls 0 → 0.0.0.0_90 TLS',
      '8080 raw_buffer 0 → 0.0.0.0_8080',
    ]);
  });

  it('the listener inspects connections only if a chain depends on this', () => {
    const filters = (yaml: string, metadata: Record<string, string> = withAgent): string[] =>
      built(yaml, { metadata }).virtual.listenerFilters.map(
        ({ name, filterDisabled }) => `${name.split('.').at(-1)} ${filterDisabled?.rule.case ?? 'always'}`,
      );
    expect(filters(web)).toEqual([
      'original_dst always',
      'tls_inspector always',
      'http_inspector destinationPortRange',
    ]);
    expect(filters(web + policy('{ mtls: { mode: STRICT } }'))).toEqual([
      'original_dst always',
      'tls_inspector always',
    ]);
    expect(filters(web, {})).toEqual(['original_dst always', 'http_inspector destinationPortRange']);
    expect(filters(web, { ...withAgent, INTERCEPTION_MODE: 'TPROXY' })[1]).toBe('original_src always');
    const spec =
      '{ selector: { matchLabels: { app: web } }, mtls: { mode: DISABLE }, portLevelMtls: { 90: { mode: STRICT } } }';
    expect(filters(web + policy(spec))).toEqual([
      'original_dst always',
      'tls_inspector notMatch',
      'http_inspector orMatch',
    ]);
  });

  it("the chain of an ingress listener is named after the bind address or else the proxy's address", () => {
    const port = '{ number: 9080, name: tcp, protocol: TCP }';
    const names = (bind: string): string[] =>
      chains(built(sidecar(`[{ port: ${port}, defaultEndpoint: 127.0.0.1:80 ${bind} }]`)).virtual).slice(-1);
    expect(names('')).toEqual(['9080 raw_buffer 0 → 10.0.0.9_9080']);
    expect(names(', bind: 127.0.0.1')).toEqual(['9080 raw_buffer 0 → 127.0.0.1_9080']);
  });

  it("a Sidecar object's TLS is terminated if mutual TLS of the mesh is off, and otherwise forwarded as TCP", () => {
    const listener = `[{ port: { number: 9443, name: https, protocol: HTTPS }, defaultEndpoint: 127.0.0.1:80,
      tls: { mode: SIMPLE, serverCertificate: /a.crt, privateKey: /a.key } }]`;
    const at = (mode: string): string[] =>
      chains(built(sidecar(listener) + policy(`{ mtls: { mode: ${mode} } }`)).virtual).filter((one) =>
        one.startsWith('9443'),
      );
    expect(at('DISABLE')).toEqual(['9443 tls 0 → 10.0.0.9_9443 TLS']);
    expect(at('STRICT')).toEqual(['9443 tls 0 → 10.0.0.9_9443 TLS']);
    expect(at('PERMISSIVE').slice(-2)).toEqual(['9443 tls 0 → 10.0.0.9_9443', '9443 raw_buffer 0 → 10.0.0.9_9443']);
  });

  it('each chain originates from the object that determines its mode', () => {
    const { filterChains } = built(web + policy('{ mtls: { mode: STRICT } }')).virtual;
    const origins = (chain: FilterChain): string[] =>
      originsOf(chain).map(({ key, path = [] }) => [key.kind, ...path].join(' '));
    expect(origins(filterChains.at(-1)!)).toEqual(['ServiceEntry', 'PeerAuthentication spec mtls']);
    expect(origins(filterChains[1]!)).toEqual(['PeerAuthentication spec mtls']);
  });
});

describe('destination of inbound connections', () => {
  it('inbound connections use the original destination, or loopback if the mesh requires it', () => {
    const inbound = (meshConfig: string): Cluster =>
      built(web, {}, meshConfig).clusters.find(({ name }) => name === 'inbound|8080||')!;
    expect(inbound('').upstreamBindConfig?.sourceAddress?.address).toBe('127.0.0.6');
    const local = inbound('inboundTrafficPolicy: { mode: LOCALHOST }');
    expect(local.upstreamBindConfig).toBeUndefined();
    expect(local.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier.value).toMatchObject({
      address: { address: { value: { address: '127.0.0.1', portSpecifier: { value: 8080 } } } },
    });
  });
});

describe('inbound connections of a dual-stack workload', () => {
  it('a dual-stack workload listens on both wildcards, and connects from the same address family', () => {
    const node = { metadata: { ...withAgent, INSTANCE_IPS: '10.0.0.9,fd00::9' } };
    const { listeners, clusters } = built(web, node);
    const virtual = listeners.filter(({ name }) => name.startsWith('virtual'));
    const further = virtual.flatMap(({ additionalAddresses }) => additionalAddresses.map(({ address }) => address));
    expect(further).toMatchObject([15001, 15006].map((port) => addressOf('::', port)));
    const inbound = clusters.filter(({ name }) => /^inbound/i.test(name));
    expect(inbound).toHaveLength(3);
    for (const { upstreamBindConfig } of inbound) {
      expect(upstreamBindConfig).toMatchObject({
        sourceAddress: { address: '127.0.0.6' },
        extraSourceAddresses: [{ address: { address: '::6' } }],
      });
    }
  });
});

function addressOf(address: string, port: number) {
  return { address: { value: { address, portSpecifier: { value: port } } } };
}

/** Clients that a sidecar's ports admit, by mutual TLS mode: the filter chains of the virtual inbound listener in a real Envoy. */
import type { Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Secret, SecretSchema } from '../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { EnvoyResource } from '../../src/networking/index.ts';
import { inboundPassthroughCluster } from '../../src/networking/traffic/resource-names.ts';
import { createAuthority } from '../certs/authority.ts';
import {
  exchange,
  type InboundListener,
  type InboundPlace,
  plain,
  startInboundListener,
  waitUntil,
} from '../networking/inbound-listener.ts';

const authority = createAuthority();
/** An authority of another trust domain. */
const otherAuthority = createAuthority('elsewhere');
const ownCertificate = authority.issue(['spiffe://cluster.local/ns/shop/sa/web']);
const inline = (inlineString: string) => ({ specifier: { case: 'inlineString' as const, value: inlineString } });
const secrets = [
  secret('default', {
    case: 'tlsCertificate',
    value: {
      certificateChain: inline(ownCertificate.certificate),
      privateKey: inline(ownCertificate.privateKey),
    } as never,
  }),
  secret('ROOTCA', { case: 'validationContext', value: { trustedCa: inline(authority.certificate) } as never }),
];

function secret(name: string, type: Secret['type']): EnvoyResource {
  return new EnvoyResource(name, SecretSchema, create(SecretSchema, { name, type }));
}

/** A client of the mesh that offers these ALPN protocols. */
function mutual(
  port: number,
  alpn: string,
  identity = 'spiffe://cluster.local/ns/shop/sa/client',
  issuer = authority,
): TLSSocket {
  const { certificate: cert, privateKey: key } = issuer.issue([identity]);
  return connectTls({ ...{ host: '127.0.0.1', port, cert, key, ALPNProtocols: [alpn] }, rejectUnauthorized: false });
}

const request = 'GET /read HTTP/1.1\r\nhost: any.test\r\n\r\n';

function startInbound(inboundPlace: Omit<InboundPlace, 'secrets'>): {
  inbound(): InboundListener;
  exchange(socket: Socket, text: string): Promise<string>;
} {
  let inbound: InboundListener;
  beforeAll(async () => {
    inbound = await startInboundListener({ ...inboundPlace, secrets });
  });
  afterAll(() => inbound?.stop());
  return {
    inbound: () => inbound,
    /** The identity that the application received. */
    exchange: async (socket, text) => {
      inbound.application.received.length = 0;
      await exchange(socket, text);
      return Buffer.concat(inbound.application.received).toString('latin1');
    },
  };
}

describe('a port in permissive mode', () => {
  const { inbound, exchange } = startInbound({ of: 'peer-permissive', cluster: inboundPassthroughCluster });

  test('forwards raw bytes, and parses HTTP requests', async () => {
    expect(await exchange(plain(inbound().port), 'raw bytes\n')).toBe('raw bytes\n');
    expect(await exchange(plain(inbound().port), request)).toContain('x-request-id: ');
  });

  test("terminates the mesh's mutual TLS for raw bytes and for HTTP requests", async () => {
    expect(await exchange(mutual(inbound().port, 'istio'), 'raw bytes\n')).toBe('raw bytes\n');
    expect(await exchange(mutual(inbound().port, 'istio-http/1.1'), request)).toContain(
      'URI=spiffe://cluster.local/ns/shop/sa/client',
    );
  });

  test("forwards the application's TLS unchanged", async () => {
    inbound().application.received.length = 0;
    const client = mutual(inbound().port, 'http/1.1');
    client.on('error', () => client.destroy());
    await waitUntil(() => inbound().application.received.length > 0);
    client.destroy();
    expect(inbound().application.received[0]?.[0]).toBe(0x16);
  });
});

describe('a port that accepts only mutual TLS', () => {
  const { inbound, exchange } = startInbound({ of: 'peer-strict', cluster: inboundPassthroughCluster });
  const domain = 'spiffe://shop.example/ns/shop/sa/client';

  test('accepts workloads of the trust domain and its alias', async () => {
    expect(await exchange(mutual(inbound().port, 'istio', domain), 'raw bytes\n')).toBe('raw bytes\n');
    expect(await exchange(mutual(inbound().port, 'any', domain.replace('shop.', 'old.')), 'raw bytes\n')).toBe(
      'raw bytes\n',
    );
    expect(await exchange(mutual(inbound().port, 'istio-http/1.1', domain), request)).toContain(`URI=${domain}`);
  });

  test.each([
    ['raw bytes', (port: number) => plain(port)],
    ['a workload of another trust domain', (port: number) => mutual(port, 'istio')],
    [
      'a workload of a trust domain that has this one as a prefix',
      (port: number) => mutual(port, 'istio', domain.replace('shop.example', 'shop.example.org')),
    ],
    [
      'a name of this trust domain signed by the root of another one',
      (port: number) => mutual(port, 'istio', domain, otherAuthority),
    ],
    [
      'a client without a certificate',
      (port: number) => connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }),
    ],
  ])('rejects %s', async (_, connect) => {
    await expect(exchange(connect(inbound().port), 'raw bytes\n')).rejects.toThrow(/closed|reset|alert|EPIPE/i);
    expect(inbound().application.received).toEqual([]);
  });
});

describe('a port that belongs to no service, without mutual TLS', () => {
  const { inbound, exchange } = startInbound({ of: 'peer-strict', port: 7000, cluster: inboundPassthroughCluster });

  test('accepts raw bytes, and parses HTTP requests', async () => {
    expect(await exchange(plain(inbound().port), 'raw bytes\n')).toBe('raw bytes\n');
    expect(await exchange(plain(inbound().port), request)).toContain('x-request-id: ');
  });
});

/** An SDS server that replaces the agent: serves workload certificates, and files by name. */
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { type Secret, SecretSchema } from '../../../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '../../../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { CertificateAuthority, IssuedCertificate } from '../../../certs/authority.ts';

type Stream = ServerDuplexStream<DiscoveryRequest, DiscoveryResponse>;

export interface WorkloadSecrets {
  readonly port: number;
  close(): void;
}

/** @param identities SPIFFE ID by node ID */
export async function startWorkloadSecrets(
  authority: CertificateAuthority,
  identities: ReadonlyMap<string, string>,
): Promise<WorkloadSecrets> {
  const certificatesByNode = new Map<string, IssuedCertificate>();
  const certificateOf = (node: string): IssuedCertificate => {
    const nodeCertificate =
      certificatesByNode.get(node) ?? authority.issue([identities.get(node) ?? 'spiffe://unknown']);
    certificatesByNode.set(node, nodeCertificate);
    return nodeCertificate;
  };
  const serve = (stream: Stream): void => {
    let node = '';
    let lastRequested = '';
    stream.on('error', () => stream.end());
    stream.on('end', () => stream.end());
    stream.on('data', (request: DiscoveryRequest) => {
      node = request.node?.id || node;
      const names = request.resourceNames.join(' ');
      if (names === lastRequested) return;
      lastRequested = names;
      const secrets = request.resourceNames.map((name) => secretOf(name, certificateOf(node), authority));
      stream.write(
        create(DiscoveryResponseSchema, {
          typeUrl: request.typeUrl,
          versionInfo: names,
          nonce: names,
          resources: secrets.map((secret) => anyPack(SecretSchema, secret)),
        }),
      );
    });
  };
  const server = new Server();
  server.addService(
    {
      secrets: {
        path: '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets',
        requestStream: true,
        responseStream: true,
        requestDeserialize: (bytes: Buffer) => fromBinary(DiscoveryRequestSchema, bytes),
        requestSerialize: (request: DiscoveryRequest) => Buffer.from(toBinary(DiscoveryRequestSchema, request)),
        responseSerialize: (response: DiscoveryResponse) => Buffer.from(toBinary(DiscoveryResponseSchema, response)),
        responseDeserialize: (bytes: Buffer) => fromBinary(DiscoveryResponseSchema, bytes),
      },
    },
    { secrets: serve },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { port, close: () => server.forceShutdown() };
}

/** `default`, `ROOTCA`, `file-cert:CERT~KEY`, `file-root:CA`. */
function secretOf(name: string, ownCertificate: IssuedCertificate, authority: CertificateAuthority): Secret {
  const [kind, files = ''] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  if (name === 'ROOTCA') return root(name, authority.certificate);
  if (name === 'file-root:system') return root(name, rootCertificates.join('\n'));
  if (kind === 'file-root') return root(name, readFileSync(files, 'utf8'));
  if (kind !== 'file-cert') return pair(name, ownCertificate.certificate, ownCertificate.privateKey);
  const [certificate = '', key = ''] = files.split('~');
  return pair(name, readFileSync(certificate, 'utf8'), readFileSync(key, 'utf8'));
}

function root(name: string, certificates: string): Secret {
  return create(SecretSchema, {
    name,
    type: { case: 'validationContext', value: { trustedCa: inline(certificates) } },
  });
}

function pair(name: string, certificate: string, key: string): Secret {
  const value = { certificateChain: inline(certificate), privateKey: inline(key) };
  return create(SecretSchema, { name, type: { case: 'tlsCertificate', value } });
}

function inline(value: string): { specifier: { case: 'inlineString'; value: string } } {
  return { specifier: { case: 'inlineString', value } };
}

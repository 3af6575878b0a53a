/**
 * Reports TLS servers on one port whose certificates cover each other's hosts but whose routes are separate. A browser reuses its HTTP/2 connection,
 * so requests for the second host match no route.
 */
import { X509Certificate } from 'node:crypto';
import { isLeft } from 'fp-ts/lib/Either.js';
import type { Config } from '../../../model/config/config.ts';
import type { Gateway, Server } from '../../../model/kinds/gateway/gateway.ts';
import { serverCertificateOf } from '../../../model/kinds/kubernetes/credential.ts';
import type { Secret } from '../../../model/kinds/kubernetes/secret.ts';
import { credentialsOfServer, parseCredentialName } from '../../../networking/secrets/credential-name.ts';
import { type CheckSources, type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

interface TlsServer {
  readonly config: Config<Gateway>;
  readonly server: Server;
  readonly index: number;
  readonly hosts: readonly string[];
}

export const checkSharedCertificates: ConfigCheck = function* (sources) {
  const serverByCertificate = new Map<string, TlsServer>();
  const serverByName = new Map<string, TlsServer>();
  for (const config of sources.configs.Gateway) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, server] of config.spec.servers.entries()) {
      if (server.port.protocol !== 'HTTPS' || server.tls === undefined || server.tls.mode === 'PASSTHROUGH') continue;
      const listenerKey = `${JSON.stringify(Object.entries(config.spec.selector).sort())} ${server.port.number} ${server.bind ?? ''}`;
      const tlsServer = { config, server, index, hosts: server.hosts.map((host) => host.slice(host.indexOf('/') + 1)) };
      const certificate = certificateText(tlsServer);
      if (certificate === undefined) continue;
      const key = `${listenerKey} ${certificate}`;
      const sameCertificateServer = serverByCertificate.get(key);
      const conflictingServer = sameCertificateServer ?? coveringHost(tlsServer, listenerKey, serverByName);
      if (conflictingServer !== undefined && !isCoveredBy(tlsServer, conflictingServer))
        yield warningAbout(tlsServer, conflictingServer, sameCertificateServer !== undefined);
      if (sameCertificateServer === undefined) serverByCertificate.set(key, tlsServer);
      for (const name of namesOf(tlsServer, sources))
        if (!serverByName.has(`${listenerKey} ${name}`)) serverByName.set(`${listenerKey} ${name}`, tlsServer);
    }
  }
};

function warningAbout({ config, server, index }: TlsServer, otherServer: TlsServer, isSameGateway: boolean) {
  const otherServerText = `server ${otherServer.server.port.name || otherServer.server.port.number} of Gateway ${otherServer.config.namespace}/${otherServer.config.name}`;
  const overlapText = isSameGateway
    ? `the certificate is also that of ${otherServerText}`
    : `the certificate of ${otherServerText} covers a host of this server`;
  return {
    ...({ code: 'CERTIFICATE_SHARED', config } as const),
    field: `spec.servers[${index}].tls`,
    message: `${overlapText}, which has other hosts on port ${server.port.number}: a browser that reuses an HTTP/2 connection for both gets 404; serve the hosts in one server, or give each server a certificate of its own hosts only`,
    other: { config: otherServer.config, field: `spec.servers[${otherServer.index}].tls` },
  };
}

/** `undefined` for the certificate of the workload. */
function certificateText({ config: { namespace }, server: { tls } }: TlsServer): string | undefined {
  if (tls === undefined) return undefined;
  const names = [tls.credentialName, ...(tls.credentialNames ?? [])].filter(
    (name) => name !== undefined && name !== '',
  );
  if (names.length > 0) return `${namespace} ${names.join()}`;
  const files = [
    tls.serverCertificate,
    ...(tls.tlsCertificates ?? []).map((certificate) => certificate.serverCertificate),
  ];
  const text = files.filter((file) => file !== undefined && file !== '').join();
  return text === '' ? undefined : text;
}

function coveringHost(
  { hosts }: TlsServer,
  listenerKey: string,
  serverByName: ReadonlyMap<string, TlsServer>,
): TlsServer | undefined {
  for (const host of hosts) {
    const names = host.startsWith('*.') ? [host] : [host, `*${host.slice(Math.max(0, host.indexOf('.')))}`];
    for (const name of names) {
      const overlappingServer = serverByName.get(`${listenerKey} ${name}`);
      if (overlappingServer !== undefined) return overlappingServer;
    }
  }
  return undefined;
}

/** If all hosts of one server are hosts of the other, only one of them serves these hosts. */
function isCoveredBy(a: TlsServer, b: TlsServer): boolean {
  const [smallerServer, largerServer] = a.hosts.length < b.hosts.length ? [a, b] : [b, a];
  return smallerServer.hosts.every((host) => largerServer.hosts.includes(host));
}

const namesOfSecret = new WeakMap<Secret, readonly string[]>();

function namesOf(
  { config, server: { tls } }: TlsServer,
  { context: { credentials } }: CheckSources,
): readonly string[] {
  return (tls === undefined ? [] : credentialsOfServer(tls)).flatMap((resource) => {
    const credentialName = parseCredentialName(resource, config.namespace);
    const secret =
      credentialName?.kind === 'Secret' && !credentialName.roots
        ? credentials.secret(credentialName.namespace, credentialName.name)
        : undefined;
    if (secret === undefined) return [];
    const certificateNames = namesOfSecret.get(secret.spec) ?? dnsNames(secret.spec);
    namesOfSecret.set(secret.spec, certificateNames);
    return certificateNames;
  });
}

function dnsNames(secret: Secret): readonly string[] {
  const certificateResult = serverCertificateOf(secret);
  if (isLeft(certificateResult)) return [];
  const { subjectAltName = '' } = new X509Certificate(Buffer.from(certificateResult.right.chain));
  return subjectAltName
    .split(', ')
    .flatMap((alternativeName) =>
      alternativeName.startsWith('DNS:') ? [alternativeName.slice('DNS:'.length).toLowerCase()] : [],
    );
}

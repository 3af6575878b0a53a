/** Objects that tests of gateways share. */
import { stringify } from 'yaml';
import type { IssuedCertificate } from '../../../certs/authority.ts';
import type { HttpBackend } from './backends.ts';
import { serviceEntry, virtualService } from './objects.ts';
import type { ReceivedData } from './requests.ts';

/** Address of the Service in front of a gateway. */
export const frontAddress = '10.99.0.1';

/** Joins YAML documents. */
export const joinDocuments = (...documents: string[]): string => documents.join('\n---\n');

/** A TLS Secret of namespace shop. */
export function secret(name: string, { certificate, privateKey }: IssuedCertificate, extraData: object = {}): string {
  const metadata = { name, namespace: 'shop' };
  const stringData = { 'tls.crt': certificate, 'tls.key': privateKey, ...extraData };
  return stringify({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData });
}

/** Routes all requests for a host at these gateways to a backend, with its own service. */
export function routedHost(host: string, backend: HttpBackend, gateways: readonly string[]): string {
  const service = `${backend.name}.backends.test`;
  return joinDocuments(
    serviceEntry(service, { port: backend.port, backends: [backend] }),
    virtualService(host, { gateways, http: [{ route: [{ destination: { host: service } }] }] }),
  );
}

export const serial = ({ peer }: ReceivedData): string | undefined => peer?.serialNumber;

/** A GET request as HTTP/1.1 text. */
export const requestText = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

/** Tests, for every combination of fields, that a TLS context that requests client certificates also verifies them. */
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { DownstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ServerTlsMode, ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import { downstreamTls } from './tls-context.ts';

const { context: push } = givenMesh('');

const modes: readonly ServerTlsMode[] = ['SIMPLE', 'MUTUAL', 'OPTIONAL_MUTUAL', 'ISTIO_MUTUAL'];

/** Optional fields, tested in all combinations. */
const optionalFields: readonly Partial<ServerTlsSettings>[] = [
  { serverCertificate: '/tls.crt', privateKey: '/tls.key' },
  { caCertificates: '/ca.crt' },
  { credentialName: 'web' },
  { credentialNames: [] },
  { caCertCredentialName: 'roots' },
  { tlsCertificates: [{ serverCertificate: '/tls.crt', privateKey: '/tls.key' }] },
  { subjectAltNames: ['client.test'] },
];

const settings = modes.flatMap((mode) =>
  Array.from({ length: 2 ** optionalFields.length }, (_, bits) =>
    Object.assign({ mode }, ...optionalFields.filter((__, index) => (bits >> index) & 1)),
  ),
) as readonly ServerTlsSettings[];

it.each([
  ['with', 'true'],
  ['without', 'false'],
])('a TLS context that requires a certificate always verifies the certificate, for a proxy %s an agent', (_, agent) => {
  const shape = { ...givenShape({ type: 'router' }), metadata: { WORKLOAD_CERTIFICATES: agent } };
  let contextCount = 0;
  for (const tls of settings) {
    const socket = downstreamTls(tls, [], { shape, push });
    if (socket === undefined) continue;
    contextCount++;
    const typed = socket.configType.case === 'typedConfig' ? socket.configType.value : undefined;
    const { commonTlsContext, requireClientCertificate } = anyUnpack(typed!, DownstreamTlsContextSchema)!;
    const type = commonTlsContext?.validationContextType;
    const checks =
      type?.case === 'combinedValidationContext'
        ? type.value.validationContextSdsSecretConfig?.name
        : type?.case === 'validationContext'
          ? type.value.trustedCa?.specifier.value
          : undefined;
    const text = JSON.stringify(tls);
    expect(requireClientCertificate ?? false, text).toBe(tls.mode === 'MUTUAL' || tls.mode === 'ISTIO_MUTUAL');
    if (tls.mode === 'SIMPLE') expect(type?.case, text).toBeUndefined();
    else expect(checks, text).toMatch(/./);
  }
  expect(contextCount).toBeGreaterThan(settings.length / 3);
});

import {
  boolean,
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  name,
  oneOf,
  optional,
  refine,
  required,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import * as violation from '../../fields/violation.ts';
import { checksClients, clientAuthority } from '../destinations/client-authority.ts';
import { duplicateErrors, fileName } from '../field-rules.ts';
import type { ServerTlsSettings, TlsCertificate } from './gateway.ts';

const tlsVersions = ['TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'] as const;

const certificate = struct<TlsCertificate>({
  serverCertificate: required(fileName),
  privateKey: required(fileName),
  ...restrictions({ caCertificates: optional(fileName) }),
});

export const serverTls: Decoder<ServerTlsSettings> = withSchemaValidation(
  refine(
    struct<ServerTlsSettings>({
      httpsRedirect: optional(boolean),
      serverCertificate: optional(fileName),
      privateKey: optional(fileName),
      caCertificates: optional(fileName),
      credentialName: optional(name),
      credentialNames: optional(list(name)),
      tlsCertificates: optional(list(certificate)),
      ...restrictions({
        mode: withDefault(
          oneOf(['PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL']),
          'PASSTHROUGH',
        ),
        caCertCredentialName: optional(name),
        caCrl: optional(fileName),
        subjectAltNames: optional(list(name)),
        verifyCertificateSpki: optional(
          list(
            withSchemaValidation(
              refine(name, (hash, path) => violation.errorsAt(path, spkiViolation(hash))),
              { pattern: '^[A-Za-z0-9+/]{43}=$' },
            ),
          ),
        ),
        verifyCertificateHash: optional(
          list(
            withSchemaValidation(
              refine(name, (hash, path) => violation.errorsAt(path, hashViolation(hash))),
              { pattern: '^(?i:[0-9a-f]{64}|[0-9a-f]{2}(?::[0-9a-f]{2}){31})$' },
            ),
          ),
        ),
      }),
      minProtocolVersion: optional(oneOf(tlsVersions)),
      maxProtocolVersion: optional(oneOf(tlsVersions)),
      cipherSuites: optional(list(name)),
    }),
    certificateErrors,
    versionErrors,
  ),
  {
    anyOf: [
      { properties: { mode: { enum: ['PASSTHROUGH', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL'] } } },
      { required: ['credentialName'] },
      { required: ['credentialNames'] },
      { required: ['tlsCertificates'] },
      { required: ['serverCertificate', 'privateKey'] },
    ],
  },
);

/** Envoy rejects listeners with hashes in other forms. */
function hashViolation(hash: string): violation.FieldViolation | undefined {
  return /^[0-9a-f]{64}$/i.test(hash) || /^[0-9a-f]{2}(?::[0-9a-f]{2}){31}$/i.test(hash)
    ? undefined
    : violation.mustBe('the SHA-256 of a certificate in 64 hexadecimal digits', hash);
}

function spkiViolation(hash: string): violation.FieldViolation | undefined {
  return /^[A-Za-z0-9+/]{43}=$/.test(hash)
    ? undefined
    : violation.mustBe('the SHA-256 of a public key in base64 (44 characters)', hash);
}

const certificateFiles = ['serverCertificate', 'privateKey', 'caCertificates'] as const;

function usedCredentialFields(tls: ServerTlsSettings): string[] {
  return [
    ...(tls.credentialName === undefined ? [] : ['credentialName']),
    ...(tls.credentialNames?.length ? ['credentialNames'] : []),
    ...(tls.tlsCertificates?.length ? ['tlsCertificates'] : []),
    ...(tls.serverCertificate === undefined && tls.privateKey === undefined ? [] : [fileFieldsText]),
  ];
}

const fileFieldsText = 'serverCertificate and privateKey';

function isFromSecret({ credentialName, credentialNames = [] }: ServerTlsSettings): boolean {
  return credentialName !== undefined || credentialNames.length > 0;
}

function certificateErrors(tls: ServerTlsSettings, path: string): FieldError[] {
  const credentialFields = usedCredentialFields(tls);
  if (tls.mode === 'ISTIO_MUTUAL') {
    const roots = (['caCertificates', 'caCertCredentialName'] as const).filter((field) => tls[field] !== undefined);
    const setFields = [...credentialFields, ...roots];
    return violation.errorsAt(
      path,
      setFields.length > 0
        ? violation.conflict(`must not have ${violation.listText(setFields)} with mode ISTIO_MUTUAL`)
        : undefined,
    );
  }
  const setCredentialFields = isFromSecret(tls)
    ? credentialFields.filter((candidate) => candidate !== fileFieldsText)
    : credentialFields;
  const errors = violation.errorsAt(
    path,
    setCredentialFields.length > 1 ? violation.exclusiveFields(setCredentialFields) : undefined,
  );
  if (tls.mode === 'PASSTHROUGH' || tls.mode === 'AUTO_PASSTHROUGH') return errors;
  const usesSecret = isFromSecret(tls);
  if (tls.mode === 'SIMPLE' && tls.caCrl !== undefined && !usesSecret) {
    errors.push(
      violation.fieldError(fieldPath(path, 'caCrl'), violation.excludedField('with mode SIMPLE: use MUTUAL')),
    );
  }
  if (usesSecret) return errors;
  if ((tls.tlsCertificates?.length ?? 0) > 0) {
    const lacksAuthority = checksClients(tls) && clientAuthority(tls) === undefined;
    const missingViolation = violation.missingValue(
      `with mode ${tls.mode}, here or in tlsCertificates, unless caCertCredentialName is set`,
    );
    return [
      ...errors,
      ...violation.errorsAt(fieldPath(path, 'caCertificates'), lacksAuthority ? missingViolation : undefined),
    ];
  }
  const needed = tls.mode === 'SIMPLE' ? certificateFiles.slice(0, 2) : certificateFiles;
  for (const field of needed) {
    if (tls[field] !== undefined || (field === 'caCertificates' && tls.caCertCredentialName !== undefined)) continue;
    errors.push(
      violation.fieldError(
        fieldPath(path, field),
        violation.missingValue(`with mode ${tls.mode} unless credentialName is set`),
      ),
    );
  }
  return errors;
}

function versionErrors(tls: ServerTlsSettings, path: string): FieldError[] {
  const versionRank = (version: (typeof tlsVersions)[number] | undefined): number =>
    tlsVersions.indexOf(version ?? 'TLS_AUTO');
  const [min, max] = [versionRank(tls.minProtocolVersion), versionRank(tls.maxProtocolVersion)];
  const isRangeInverted = min > 0 && max > 0 && min > max;
  return violation.errorsAt(
    fieldPath(path, 'minProtocolVersion'),
    isRangeInverted
      ? violation.outOfRange(`at most maxProtocolVersion, ${tls.maxProtocolVersion}`, tls.minProtocolVersion)
      : undefined,
  );
}

export const supportedCipherSuites: ReadonlySet<string> = new Set([
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  '[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]',
  '[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]',
  'ECDHE-PSK-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-SHA',
  'ECDHE-RSA-AES128-SHA',
  'ECDHE-PSK-AES128-CBC-SHA',
  'ECDHE-ECDSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA',
  'ECDHE-PSK-AES256-CBC-SHA',
  'AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-SHA',
  'AES256-SHA',
  'DES-CBC3-SHA',
]);

/** These fields apply only if clients present a certificate. */
const clientFields = [
  'caCertificates',
  'caCertCredentialName',
  'subjectAltNames',
  'verifyCertificateSpki',
  'verifyCertificateHash',
] as const;
const serverFields = [
  'serverCertificate',
  'privateKey',
  'credentialName',
  'credentialNames',
  'tlsCertificates',
  'caCrl',
] as const;

function unusedFields(tls: ServerTlsSettings, path: string): FieldError[] {
  const isPassthrough = tls.mode === 'PASSTHROUGH' || tls.mode === 'AUTO_PASSTHROUGH';
  const unusedFieldNames = isPassthrough
    ? [...serverFields, ...clientFields]
    : tls.mode === 'SIMPLE'
      ? [...clientFields, 'caCrl' as const]
      : [];
  const modeViolation = isPassthrough
    ? violation.ineffectiveField(`the server does not terminate TLS with mode ${tls.mode}`)
    : violation.ineffectiveField('mode SIMPLE requests no client certificate: use MUTUAL');
  const setFields = unusedFieldNames.filter((field) => tls[field] !== undefined && tls[field].length > 0);
  const emptyFields = clientFields.filter((field) => Array.isArray(tls[field]) && tls[field].length === 0);
  const ignoredFiles =
    isFromSecret(tls) && !isPassthrough ? certificateFiles.filter((field) => tls[field] !== undefined) : [];
  return [
    ...setFields.map((field) => violation.fieldError(fieldPath(path, field), modeViolation)),
    ...emptyFields.map((field) =>
      violation.fieldError(fieldPath(path, field), violation.ineffectiveField('the list is empty')),
    ),
    ...ignoredFiles
      .filter((field) => !(setFields as readonly string[]).includes(field))
      .map((field) =>
        violation.fieldError(fieldPath(path, field), violation.ineffectiveField('credentialName is used instead')),
      ),
  ];
}

export function serverTlsWarnings(tls: ServerTlsSettings, path: string): FieldError[] {
  const suites = tls.cipherSuites ?? [];
  const pathAt = (index: number): string => `${fieldPath(path, 'cipherSuites')}[${index}]`;
  return [
    ...unusedFields(tls, path),
    ...suites.flatMap((suite, index) => {
      return violation.errorsAt(
        pathAt(index),
        supportedCipherSuites.has(suite)
          ? undefined
          : violation.ineffectiveField(`${suite} is not a known cipher suite`),
      );
    }),
    ...duplicateErrors(suites, (suite) => suite, pathAt, 'cipher suite'),
  ];
}

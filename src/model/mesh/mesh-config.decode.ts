import * as E from 'fp-ts/lib/Either.js';
import { certificatesIn } from '../../identity/pem.ts';
import { isObject } from '../../runtime/json-object.ts';
import { type Problem, violationIn } from '../config/problem.ts';
import {
  anyValue,
  boolean,
  type Decoded,
  type Decoder,
  decodeIgnoringUnknown,
  dictionary,
  durationAtLeast,
  durationMs,
  type FieldDecoders,
  type FieldError,
  fail,
  fieldPath,
  integer,
  list,
  mapDecoder,
  name,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  restrictions,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { type FieldDescription, withDescription } from '../fields/description.ts';
import { effectWarnings, withoutEffect } from '../fields/effect.ts';
import { isDnsLabel, isHostname, isNamespace, isObjectName } from '../fields/names.ts';
import { orQuoted } from '../fields/quoted-number.ts';
import * as violation from '../fields/violation.ts';
import { connectTimeoutMs, localityLbSetting, tcpKeepalive } from '../kinds/destinations/traffic-policy.decode.ts';
import { duplicateErrors, exportTo, hostText } from '../kinds/field-rules.ts';
import { labelSelector } from '../kinds/label-selector.decode.ts';
import { httpRetry } from '../kinds/virtual-service/virtual-service.decode.ts';
import { parseYamlDocument } from '../yaml/yaml-document.ts';
import { extAuthzProviders } from './ext-authz-provider.ts';
import { telemetryProviders } from './extension-providers.decode.ts';
import {
  type ConfigSourceSettings,
  type ConfigSourceTls,
  type DefaultProviders,
  type DnsCertificate,
  defaultMeshConfig,
  type ExtensionProvider,
  type MeshConfig,
  type MeshConfigPart,
  type MeshRoots,
  mergeMeshConfig,
  type ServiceSetting,
  type TlsDefaults,
} from './mesh-config.ts';
import { meshConfigErrors, providerFindings, providersWithoutEffect } from './mesh-config-rules.ts';
import { decodeProxyConfig, withJsonNames } from './proxy-config.ts';
import { unknownProxySettings } from './proxy-settings.ts';

const wholeMilliseconds = refine(durationMs, (ms, path) =>
  violation.errorsAt(
    path,
    ms >= 0 && Number.isInteger(ms)
      ? undefined
      : violation.outOfRange('0s or an integer number of milliseconds', `${ms}ms`),
  ),
);

/** Accepts DNS-1123 labels separated by dots, at most 255 characters. */
export const trustDomain: Decoder<string> = refine(name, (value, path) => {
  const isValid = value.length <= 255 && value.split('.').every(isDnsLabel);
  return violation.errorsAt(path, isValid ? undefined : violation.mustBe('a domain name', value));
});

/** Validates every PEM block, because each is trusted. */
const certificates = refine(text, (pem, path) => {
  return violation.errorsAt(
    path,
    areCertificateAuthorities(pem) ? undefined : violation.mustBeHidden('CA certificates in PEM'),
  );
});

function areCertificateAuthorities(pem: string): boolean {
  try {
    const parsedCertificates = certificatesIn(pem);
    return parsedCertificates.length > 0 && parsedCertificates.every(({ ca }) => ca);
  } catch {
    return false;
  }
}

const meshRoots = refine(
  struct<MeshRoots>({
    pem: optional(certificates),
    spiffeBundleUrl: optional(text),
    trustDomains: withDefault(list(trustDomain), []),
  }),
  ({ pem, spiffeBundleUrl }, path) =>
    violation.errorsAt(
      path,
      (pem === undefined) === (spiffeBundleUrl === undefined)
        ? violation.choiceViolation(['pem', 'spiffeBundleUrl'], pem === undefined ? [] : ['pem', 'spiffeBundleUrl'])
        : undefined,
    ),
);

const maxDnsNames = 100;
const maxDnsCertificates = 100;
/** Secrets of the CA, which generated certificates must not overwrite. */
const authoritySecrets: readonly string[] = ['istio-ca-secret', 'cacerts'];

const secretName = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    authoritySecrets.includes(value)
      ? violation.disallowedValue('must not be the Secret of a certificate authority', value)
      : isObjectName(value)
        ? undefined
        : violation.mustBe('the name of a Secret', value),
  ),
);

const dnsNames = refine(list(name), (names, path) => [
  ...violation.errorsAt(
    path,
    names.length > 0 && names.length <= maxDnsNames
      ? undefined
      : violation.outOfRange(`a list of 1 to ${maxDnsNames} names`, names.length),
  ),
  ...names.flatMap((host, index) =>
    violation.errorsAt(
      `${path}[${index}]`,
      isHostname(host.replace(/^\*\./, '')) ? undefined : violation.mustBe('a host name', host),
    ),
  ),
]);

const dnsCertificate = struct<DnsCertificate>({ secretName: required(secretName), dnsNames: required(dnsNames) });

const dnsCertificates = refine(list(dnsCertificate), (certificates, path) => [
  ...violation.errorsAt(
    path,
    certificates.length > maxDnsCertificates
      ? violation.tooLarge(maxDnsCertificates, certificates.length, 'certificates')
      : undefined,
  ),
  ...duplicateErrors(
    certificates,
    (certificate) => certificate.secretName,
    (index) => `${path}[${index}].secretName`,
    'secretName',
  ),
]);

const cipherSuites = [
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
] as const;

const tlsFields: FieldDecoders<TlsDefaults> = {
  minProtocolVersion: optional(oneOf(['TLS_AUTO', 'TLSV1_2', 'TLSV1_3'])),
  cipherSuites: optional(list(oneOf(cipherSuites))),
  ecdhCurves: optional(list(oneOf(['P-256', 'P-384', 'P-521', 'X25519', 'X25519MLKEM768']))),
};

const serviceSetting = struct<ServiceSetting>({
  settings: optional(struct<{ clusterLocal?: boolean }>({ clusterLocal: optional(boolean) })),
  hosts: optional(list(hostText(() => undefined))),
});

const settingsOfProvider = (type: string, decoder: Decoder<object>): FieldDescription => ({
  ...{ name: type, decoder, isRequired: false, refusesNull: false },
});

/** Keeps a provider's settings undecoded; {@link providerFindings} decodes them. */
const extensionProvider: Decoder<ExtensionProvider> = withDescription(
  (value: unknown, path: string): Decoded<ExtensionProvider> => {
    if (!isObject(value)) return fail(path, violation.wrongType('an object with a name', value));
    return E.map((providerName: string): ExtensionProvider => ({ ...value, name: providerName }))(
      name(value.name ?? '', fieldPath(path, 'name')),
    );
  },
  {
    type: 'object',
    fields: [
      { name: 'name', decoder: name, isRequired: true, refusesNull: false },
      ...Object.entries<Decoder<object>>({ ...telemetryProviders, ...extAuthzProviders }).map(([type, decoder]) =>
        settingsOfProvider(type, decoder),
      ),
      ...providersWithoutEffect.map((type) => ({
        ...settingsOfProvider(type, dictionary(anyValue)),
        effect: { type: 'none', reason: 'Envoy has no such provider', warns: () => true } as const,
      })),
    ],
  },
);

const extensionProviders = refine(list(extensionProvider), (providers, path) =>
  duplicateErrors(
    providers,
    (provider) => provider.name,
    (index) => `${path}[${index}].name`,
    'name',
  ),
);

const defaultProviders = struct<DefaultProviders>({
  tracing: optional(list(name)),
  metrics: optional(list(name)),
  accessLogging: optional(list(name)),
});

const exportingNamespace: Decoder<string> = refine(text, (namespace, path) =>
  violation.errorsAt(
    path,
    namespace === '*' || isNamespace(namespace)
      ? undefined
      : violation.mustBe('the name of a namespace, or "*"', namespace),
  ),
);

const normalizations = ['DEFAULT', 'NONE', 'BASE', 'MERGE_SLASHES', 'DECODE_AND_MERGE_SLASHES'] as const;

/** With incomplete settings, a connection would have no verification or no client identity. */
const configSourceTls: Decoder<ConfigSourceTls> = refine(
  struct<ConfigSourceTls>({
    mode: withDefault(oneOf(['DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL']), 'DISABLE'),
    caCertificates: optional(text),
    clientCertificate: optional(text),
    privateKey: optional(text),
    subjectAltNames: optional(list(text)),
    sni: optional(text),
    insecureSkipVerify: optional(boolean),
  }),
  ({ mode, caCertificates, clientCertificate, privateKey, insecureSkipVerify }, path) => {
    const missingError = (field: string, value: unknown): FieldError[] =>
      value === undefined
        ? [violation.fieldError(fieldPath(path, field), violation.missingValue(`with mode ${mode}`))]
        : [];
    const isVerified = (mode === 'SIMPLE' || mode === 'MUTUAL') && insecureSkipVerify !== true;
    return [
      ...(isVerified ? missingError('caCertificates', caCertificates) : []),
      ...(mode === 'MUTUAL'
        ? [...missingError('clientCertificate', clientCertificate), ...missingError('privateKey', privateKey)]
        : []),
    ];
  },
);

export const meshConfigPart: Decoder<MeshConfigPart> = struct<MeshConfigPart>({
  proxyListenPort: optional(port),
  proxyInboundListenPort: optional(port),
  proxyHttpPort: optional(orQuoted(integer(0, 65535))),
  connectTimeoutMs: optional(connectTimeoutMs, 'connectTimeout'),
  tcpKeepalive: optional(tcpKeepalive),
  protocolDetectionTimeoutMs: optional(wholeMilliseconds, 'protocolDetectionTimeout'),
  ingressClass: optional(text),
  ingressService: optional(text),
  ingressControllerMode: optional(oneOf(['UNSPECIFIED', 'OFF', 'DEFAULT', 'STRICT'])),
  ingressSelector: optional(text),
  enableTracing: optional(boolean),
  accessLogFile: optional(text),
  accessLogFormat: optional(text),
  accessLogEncoding: optional(oneOf(['TEXT', 'JSON'])),
  enableEnvoyAccessLogService: optional(boolean),
  disableEnvoyListenerLog: optional(boolean),
  trustDomain: optional(trustDomain),
  trustDomainAliases: optional(list(trustDomain)),
  caCertificates: optional(list(meshRoots)),
  certificates: optional(dnsCertificates),
  outboundTrafficPolicy: optional(
    struct<MeshConfig['outboundTrafficPolicy']>({
      mode: withDefault(oneOf(['REGISTRY_ONLY', 'ALLOW_ANY', 'ALLOW_ANY_DYNAMIC_DNS']), 'REGISTRY_ONLY'),
    }),
  ),
  inboundTrafficPolicy: optional(
    struct<MeshConfig['inboundTrafficPolicy']>({
      mode: withDefault(oneOf(['PASSTHROUGH', 'LOCALHOST']), 'PASSTHROUGH'),
    }),
  ),
  enableAutoMtls: optional(boolean),
  localityLbSetting: optional(mapDecoder(localityLbSetting, (setting) => ({ enabled: true, ...setting }))),
  rootNamespace: optional(name),
  defaultServiceExportTo: optional(exportTo),
  defaultVirtualServiceExportTo: optional(exportTo),
  defaultDestinationRuleExportTo: optional(exportTo),
  // With `null` (a list whose items are all commented out), every namespace could export.
  ...restrictions({ exportingNamespaces: restrictingField(optional(list(exportingNamespace))) }),
  dnsRefreshRateMs: optional(durationAtLeast(1), 'dnsRefreshRate'),
  serviceSettings: optional(list(serviceSetting)),
  discoverySelectors: optional(list(labelSelector)),
  enablePrometheusMerge: optional(boolean),
  extensionProviders: optional(extensionProviders),
  defaultProviders: optional(defaultProviders),
  h2UpgradePolicy: optional(oneOf(['DO_NOT_UPGRADE', 'UPGRADE'])),
  defaultHttpRetryPolicy: optional(httpRetry),
  configSources: optional(
    list(struct<ConfigSourceSettings>({ address: required(name), tlsSettings: optional(configSourceTls) })),
  ),
  meshMTLS: optional(
    struct<TlsDefaults>({
      ...tlsFields,
      ecdhCurves: withoutEffect(tlsFields.ecdhCurves, 'Envoy selects the curves of mutual TLS'),
    }),
  ),
  tlsDefaults: optional(struct<TlsDefaults>(tlsFields)),
  pathNormalization: optional(
    struct<MeshConfig['pathNormalization']>({ normalization: withDefault(oneOf(normalizations), 'DEFAULT') }),
  ),
  inboundClusterStatName: optional(text),
  outboundClusterStatName: optional(text),
  verifyCertificateAtClient: withoutEffect(
    optional(boolean),
    'server certificates are always verified unless a DestinationRule sets insecureSkipVerify',
    [true],
  ),
  defaultConfig: optional(decodeProxyConfig),
});

function withJsonNamesWithin(value: unknown): unknown {
  return isObject(value) && isObject(value.defaultConfig)
    ? { ...value, defaultConfig: withJsonNames(value.defaultConfig) }
    : value;
}

/** Fields of earlier Istio versions. */
const retiredFields: ReadonlySet<string> = new Set([
  'mixerCheckServer',
  'mixerReportServer',
  'disablePolicyChecks',
  'authPolicy',
  'sdsUdsPath',
]);

export interface MeshConfigFile {
  readonly mesh: MeshConfig;
  readonly warnings: readonly Problem[];
}

/** Reads a mesh configuration file over a base (the defaults, or the shared configuration). */
export function readMeshConfig(
  file: string,
  content: string,
  base: MeshConfig = defaultMeshConfig,
): E.Either<readonly Problem[], MeshConfigFile> {
  const document = parseYamlDocument({ text: content, line: 1 });
  if (document.errors.length > 0) {
    return E.left(
      document.errors.map(({ line, column, message }) =>
        problem({ line, column, message: `YAML: ${message}`, code: 'YAML_INVALID' }),
      ),
    );
  }
  const decodedConfig = decodeIgnoringUnknown(meshConfigPart)(document.value ?? {});
  if (E.isLeft(decodedConfig)) return E.left(decodedConfig.left.map(toProblem));
  const { value, unknownFields } = decodedConfig.right;
  const providers = (value.extensionProviders ?? []).map((provider, index) => ({
    provider,
    ...providerFindings(provider, `extensionProviders[${index}]`),
  }));
  const writtenValue = withJsonNamesWithin(document.value);
  const unknownWithin = [
    ...providers.flatMap((providerResult) => providerResult.unknownFields),
    ...unknownProxySettings(value.defaultConfig ?? {}, 'defaultConfig'),
  ];
  const warnings: FieldError[] = [
    ...[...unknownFields, ...unknownWithin].map((error) =>
      retiredFields.has(error.path)
        ? violation.fieldError(error.path, violation.ineffectiveField('the field belongs to an old version of Istio'))
        : violation.withConsequence(error, 'it has no effect'),
    ),
    ...effectWarnings(meshConfigPart, writtenValue),
    ...providers.flatMap(({ errors }) =>
      errors.map((error) => violation.withConsequence(error, 'the provider is ignored')),
    ),
  ];
  const mergedConfig = mergeMeshConfig(base, {
    ...value,
    ...(value.extensionProviders !== undefined && {
      extensionProviders: providers.flatMap(({ provider, errors }) => (errors.length === 0 ? provider : [])),
    }),
  });
  const invalidProviders = providers.flatMap(({ provider, errors }) => (errors.length === 0 ? [] : provider.name));
  const mesh = invalidProviders.length === 0 ? mergedConfig : { ...mergedConfig, invalidProviders };
  const errors = meshConfigErrors(mesh);
  if (errors.length > 0) return E.left(errors.map(toProblem));
  return E.right({ mesh, warnings: warnings.map((warning) => ({ ...toProblem(warning), severity: 'warning' })) });

  function toProblem(error: FieldError): Problem {
    const severity = error.isIgnored ? 'warning' : 'error';
    return problem({ ...document.positionOf(error.path), field: error.path, severity, ...violationIn(error) });
  }

  function problem(details: Omit<Problem, 'file' | 'severity'> & Partial<Problem>): Problem {
    return { severity: 'error', file, ...details };
  }
}

import {
  type Decoder,
  type FieldError,
  fieldPath,
  integer,
  list,
  mapDecoder,
  name,
  nonEmptyList,
  oneOf,
  optional,
  refine,
  required,
  restrictingField,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import { limitErrors } from '../../fields/limits.ts';
import { hostViolation, isDnsLabel } from '../../fields/names.ts';
import { scopedHostPattern } from '../../fields/patterns.ts';
import { isTcp, isTls, protocolOf } from '../../fields/protocol.ts';
import * as violation from '../../fields/violation.ts';
import { inboundConnectionPool } from '../destinations/traffic-policy.decode.ts';
import {
  bindViolation,
  duplicateErrors,
  hasUnixScheme,
  isUnixAddress,
  scopedHostText,
  workloadSelector,
} from '../field-rules.ts';
import { serverTls, serverTlsWarnings } from '../gateway/server-tls.decode.ts';
import { maxSidecarHosts, maxSidecarListeners } from '../object-limits.ts';
import { portProtocol } from '../port-protocol.ts';
import { destination } from '../virtual-service/virtual-service.decode.ts';
import type { EgressListener, IngressListener, OutboundTrafficPolicy, Sidecar, SidecarPort } from './sidecar.ts';

const captureMode = withDefault(oneOf(['DEFAULT', 'IPTABLES', 'NONE']), 'DEFAULT');

const bind = optional(refine(name, (value, path) => violation.errorsAt(path, bindViolation(value))));

/**
 * Port 0 is valid here, because a later check of the bind address requires a Unix socket. Protocol detection would stall on ports of server-first
 * protocols.
 */
const sidecarPort: Decoder<SidecarPort> = mapDecoder(
  struct<Omit<SidecarPort, 'protocol'> & Partial<SidecarPort>>({
    number: withDefault(integer(0, 65535), 0),
    name: withDefault(name, ''),
    protocol: optional(portProtocol(['UDP'])),
  }),
  ({ protocol, ...portFields }): SidecarPort => ({
    ...portFields,
    protocol: protocol ?? protocolOf({ name: '', number: portFields.number }),
  }),
);

const ingressListener: Decoder<IngressListener> = refine(
  struct<IngressListener>({
    port: required(sidecarPort),
    bind,
    captureMode,
    defaultEndpoint: optional(refine(name, (value, path) => violation.errorsAt(path, defaultEndpointViolation(value)))),
    ...restrictions({ tls: restrictingField(optional(serverTls)) }),
    connectionPool: optional(inboundConnectionPool),
  }),
  (listener, path) => [
    ...violation.errorsAt(
      `${fieldPath(path, 'port')}.number`,
      listener.port.number === 0 ? violation.outOfRange('from 1 to 65535', listener.port.number) : undefined,
    ),
    ...violation.errorsAt(
      fieldPath(path, 'bind'),
      hasUnixScheme(listener.bind)
        ? violation.disallowedValue('must not be a unix socket for ingress', listener.bind)
        : undefined,
    ),
    ...(listener.tls === undefined ? [] : ingressTlsErrors(listener, path)),
  ],
);

function ingressTlsErrors(listener: IngressListener, path: string): FieldError[] {
  const tlsPath = fieldPath(path, 'tls');
  const { tls, port } = listener;
  const isPlainTcp = isTcp(port.protocol) && !isTls(port.protocol);
  return [
    ...violation.errorsAt(
      tlsPath,
      isPlainTcp
        ? violation.excludedField(`with protocol ${port.protocol}: use protocol TLS for a byte stream behind TLS`)
        : undefined,
    ),
    ...violation.errorsAt(
      `${tlsPath}.httpsRedirect`,
      tls?.httpsRedirect === true ? violation.unsupportedFeature('is not supported for sidecars') : undefined,
    ),
    ...violation.errorsAt(
      `${tlsPath}.mode`,
      tls?.mode !== 'SIMPLE' && tls?.mode !== 'MUTUAL' && tls?.mode !== 'OPTIONAL_MUTUAL'
        ? violation.unknownValue(['SIMPLE', 'MUTUAL', 'OPTIONAL_MUTUAL'], tls?.mode)
        : undefined,
    ),
  ];
}

const egressListener: Decoder<EgressListener> = refine(
  struct<EgressListener>({
    port: optional(sidecarPort),
    bind,
    captureMode,
    hosts: required(
      nonEmptyList(
        withSchemaValidation(scopedHostText(egressHostViolation), {
          allOf: [{ pattern: scopedHostPattern }, { pattern: '/' }],
        }),
      ),
    ),
  }),
  egressErrors,
);

const outboundTrafficPolicy: Decoder<OutboundTrafficPolicy> = refine(
  struct<OutboundTrafficPolicy>({
    mode: withDefault(oneOf(['REGISTRY_ONLY', 'ALLOW_ANY', 'ALLOW_ANY_DYNAMIC_DNS']), 'REGISTRY_ONLY'),
    egressProxy: optional(destination),
  }),
  (policy, path) => [
    ...violation.errorsAt(
      fieldPath(path, 'egressProxy'),
      policy.egressProxy !== undefined && policy.mode !== 'ALLOW_ANY'
        ? violation.excludedField(`with mode ${policy.mode}: use ALLOW_ANY`)
        : undefined,
    ),
    ...violation.errorsAt(
      `${fieldPath(path, 'egressProxy')}.port`,
      policy.egressProxy !== undefined && policy.egressProxy.port === undefined ? violation.missingValue() : undefined,
    ),
  ],
);

export const sidecar: Decoder<Sidecar> = withSchemaValidation(
  refine(
    struct<Sidecar>({
      workloadSelector: restrictingField(optional(workloadSelector)),
      ingress: optional(list(ingressListener, maxSidecarListeners)),
      inboundConnectionPool: optional(inboundConnectionPool),
      egress: optional(list(egressListener, maxSidecarListeners)),
      outboundTrafficPolicy: optional(outboundTrafficPolicy),
    }),
    ({ egress = [] }, path) =>
      limitErrors(
        fieldPath(path, 'egress'),
        egress.reduce((sum, { hosts }) => sum + hosts.length, 0),
        maxSidecarHosts,
        'hosts of all listeners',
      ),
    sidecarErrors,
  ),
  {
    anyOf: [
      { required: ['ingress'], properties: { ingress: { minItems: 1 } } },
      { required: ['egress'], properties: { egress: { minItems: 1 } } },
      { required: ['outboundTrafficPolicy'] },
      { required: ['inboundConnectionPool'] },
    ],
  },
);

function defaultEndpointViolation(endpoint: string): violation.FieldViolation | undefined {
  if (isUnixAddress(endpoint)) return undefined;
  const port = /^(?:127\.0\.0\.1|0\.0\.0\.0|\[::1\]|\[::\])?:(\d{1,5})$/.exec(endpoint)?.[1];
  if (port !== undefined && Number(port) >= 1 && Number(port) <= 65535) return undefined;
  return violation.mustBe('127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT, [::]:PORT, :PORT or unix:///PATH', endpoint);
}

function egressHostViolation(text: string): violation.FieldViolation | undefined {
  const [namespace, host, ...otherParts] = text.split('/');
  if (host === undefined || otherParts.length > 0)
    return violation.mustBe('namespace/host, such as "*/*" or "./*"', text);
  const namespaceName = namespace!.replace(/^~/, '');
  if (namespace !== '~' && namespaceName !== '*' && namespaceName !== '.' && !isDnsLabel(namespaceName)) {
    return violation.mustBe(
      'a host with a namespace, "*" or "." before the slash, or "~" and one of these to exclude it',
      namespace,
    );
  }
  return hostViolation(host);
}

function egressErrors(listener: EgressListener, path: string): FieldError[] {
  const onSocket = hasUnixScheme(listener.bind);
  const hasPortNumber = (listener.port?.number ?? 0) !== 0;
  const errors: FieldError[] = [];
  if (listener.port !== undefined && !hasPortNumber && !onSocket) {
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'port')}.number`,
        violation.outOfRange('from 1 to 65535 (0 only with a unix bind)', listener.port.number),
      ),
    );
  }
  if (onSocket && hasPortNumber) {
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'port')}.number`,
        violation.outOfRange('0 with a unix bind', listener.port?.number),
      ),
    );
  }
  if (listener.port === undefined && listener.bind !== undefined) {
    errors.push(violation.fieldError(fieldPath(path, 'bind'), violation.excludedField('without port')));
  }
  if (onSocket && listener.captureMode !== 'DEFAULT' && listener.captureMode !== 'NONE') {
    errors.push(
      violation.fieldError(
        fieldPath(path, 'captureMode'),
        violation.unknownValue(['DEFAULT', 'NONE'], listener.captureMode, { hint: 'bind is a unix socket' }),
      ),
    );
  }
  if (listener.port === undefined && listener.captureMode === 'NONE') {
    errors.push(violation.fieldError(fieldPath(path, 'port'), violation.missingValue('with captureMode NONE')));
  }
  return errors;
}

function sidecarErrors(spec: Sidecar, path: string): FieldError[] {
  const { ingress = [], egress = [] } = spec;
  const isEmpty =
    ingress.length === 0 && egress.length === 0 && !spec.outboundTrafficPolicy && !spec.inboundConnectionPool;
  const socketOrPort = (listener: EgressListener): string | undefined =>
    listener.port === undefined ? undefined : (listener.port.number || listener.bind || '').toString();
  return [
    ...violation.errorsAt(
      path,
      isEmpty
        ? violation.missingAny(['ingress', 'egress', 'outboundTrafficPolicy', 'inboundConnectionPool'])
        : undefined,
    ),
    ...duplicateErrors(
      ingress,
      (item) => String(item.port.number),
      (index) => `${fieldPath(path, 'ingress')}[${index}].port.number`,
      'port',
    ),
    ...duplicateErrors(egress, socketOrPort, (index) => `${fieldPath(path, 'egress')}[${index}].port`, 'port'),
    ...egress
      .slice(0, -1)
      .flatMap((listener, index) =>
        violation.errorsAt(
          `${fieldPath(path, 'egress')}[${index}].port`,
          listener.port === undefined ? violation.missingValue('for all listeners but the last') : undefined,
        ),
      ),
  ];
}

export function sidecarWarnings(spec: Sidecar): FieldError[] {
  const hasEmptySelector =
    spec.workloadSelector !== undefined && Object.keys(spec.workloadSelector.labels).length === 0;
  return [
    ...(spec.ingress ?? []).flatMap(({ tls }, index) => (tls ? serverTlsWarnings(tls, `ingress[${index}].tls`) : [])),
    ...(spec.egress ?? []).flatMap((listener, index) =>
      violation.errorsAt(
        `egress[${index}].hosts`,
        listener.hosts.includes('*/*') && listener.hosts.filter((host) => !host.startsWith('~')).length > 1
          ? violation.doubtfulValue('"*/*" includes the other hosts')
          : undefined,
      ),
    ),
    ...violation.errorsAt(
      'workloadSelector',
      hasEmptySelector
        ? violation.doubtfulValue('has no labels: the object applies to the whole namespace')
        : undefined,
    ),
  ];
}

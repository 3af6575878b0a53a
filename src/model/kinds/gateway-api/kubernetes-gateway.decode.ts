import {
  anyValue,
  type Decoder,
  dictionary,
  type FieldError,
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
} from '../../fields/decode.ts';
import { withoutEffect, withoutEffectWhere } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors } from '../field-rules.ts';
import {
  gatewayApiGroup,
  group,
  hostname,
  kindName,
  listOf,
  namespaceSelector,
  objectName,
  preciseHostname,
  secretReference,
} from './fields.ts';
import type { AllowedRoutes, GatewayAddress, KubernetesGateway, Listener, ListenerTls } from './kubernetes-gateway.ts';

const protocolPattern = /^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$|^[a-z0-9][-a-z0-9.]*\/[A-Za-z0-9]+$/;

const uncheckedReason = 'validation of client certificates is not supported here, and the listener is closed';

const clientValidationText =
  'validation of client certificates is not supported here, and listeners with TLS are closed; gateways present no certificate to backends';

const tls: Decoder<ListenerTls> = refine(
  struct<ListenerTls>({
    mode: withDefault(oneOf(['Terminate', 'Passthrough']), 'Terminate'),
    certificateRefs: withDefault(listOf(secretReference, 0, 64), []),
    ...restrictions({
      options: withDefault(dictionary(text), {}),
      frontendValidation: withoutEffectWhere(optional(anyValue), uncheckedReason, () => true),
    }),
  }),
  ({ mode, certificateRefs, options }, path) =>
    violation.errorsAt(
      path,
      mode === 'Terminate' && certificateRefs.length === 0 && Object.keys(options).length === 0
        ? violation.missingAny(['certificateRefs', 'options'])
        : undefined,
    ),
);

const allowedRoutes: Decoder<AllowedRoutes> = struct<AllowedRoutes>({
  namespaces: withDefault(
    struct<AllowedRoutes['namespaces']>(
      restrictions({
        from: withDefault(oneOf(['All', 'Selector', 'Same', 'None']), 'Same'),
        selector: restrictingField(optional(namespaceSelector)),
      }),
    ),
    { from: 'Same' },
  ),
  kinds: optional(
    listOf(
      struct<NonNullable<AllowedRoutes['kinds']>[number]>({
        group: withDefault(group, gatewayApiGroup),
        kind: required(kindName),
      }),
      0,
      8,
    ),
  ),
});

const listener: Decoder<Listener> = refine(
  struct<Listener>({
    name: required(objectName),
    ...restrictions({ hostname: optional(hostname) }),
    port: required(port),
    protocol: required(
      refine(name, (value, path) =>
        violation.errorsAt(
          path,
          protocolPattern.test(value)
            ? undefined
            : violation.mustBe('HTTP, HTTPS, TLS, TCP, UDP or a name with a domain', value),
        ),
      ),
    ),
    tls: optional(tls),
    allowedRoutes: withDefault(allowedRoutes, { namespaces: { from: 'Same' } }),
  }),
  (value, path): FieldError[] => [
    ...violation.errorsAt(
      `${path}.tls`,
      value.tls !== undefined && ['HTTP', 'TCP', 'UDP'].includes(value.protocol)
        ? violation.excludedField(`with protocol ${value.protocol}`)
        : undefined,
    ),
    ...violation.errorsAt(
      `${path}.tls.mode`,
      value.protocol === 'HTTPS' && value.tls?.mode === 'Passthrough'
        ? violation.conflict('must be Terminate with protocol HTTPS')
        : undefined,
    ),
    ...violation.errorsAt(
      `${path}.hostname`,
      value.hostname !== undefined && ['TCP', 'UDP'].includes(value.protocol)
        ? violation.excludedField(`with protocol ${value.protocol}`)
        : undefined,
    ),
  ],
);

const address: Decoder<GatewayAddress> = refine(
  struct<GatewayAddress>({
    type: withDefault(name, 'IPAddress'),
    value: withDefault(text, ''),
  }),
  ({ type, value }, path) => {
    if (type !== 'Hostname') return [];
    const decoded = preciseHostname(value, `${path}.value`);
    return decoded._tag === 'Left' ? decoded.left : [];
  },
);

export const kubernetesGateway: Decoder<KubernetesGateway> = refine(
  struct<KubernetesGateway>({
    gatewayClassName: required(objectName),
    listeners: required(listOf(listener, 1, 64)),
    addresses: withDefault(listOf(address, 0, 16), []),
    infrastructure: optional(anyValue),
    allowedListeners: withoutEffect(optional(anyValue), 'ListenerSets are not supported'),
    tls: withoutEffectWhere(optional(anyValue), clientValidationText, () => true),
    defaultScope: withoutEffect(optional(anyValue), 'default Gateways are not supported'),
  }),
  ({ listeners, addresses }, path) => [
    ...duplicateErrors(
      listeners,
      (listener) => listener.name,
      (index) => joinedPath(path, `listeners[${index}].name`),
      'name',
    ),
    ...duplicateErrors(
      listeners,
      (listener) => `${listener.port} ${listener.protocol} ${listener.hostname ?? ''}`.trim(),
      (index) => joinedPath(path, `listeners[${index}]`),
      'port, protocol and hostname',
    ),
    ...duplicateErrors(
      addresses,
      ({ type, value }) => (value === '' ? undefined : `${type} ${value}`),
      (index) => joinedPath(path, `addresses[${index}]`),
      'address',
    ),
  ],
);

function joinedPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

export function kubernetesGatewayWarnings({ addresses }: KubernetesGateway): FieldError[] {
  return addresses.flatMap(({ type }, index) =>
    violation.errorsAt(
      `addresses[${index}]`,
      type === 'Hostname'
        ? undefined
        : violation.ineffectiveField(
            `only existing Services can be named; name the Service of the gateway by an address of type Hostname, not ${type}`,
          ),
    ),
  );
}

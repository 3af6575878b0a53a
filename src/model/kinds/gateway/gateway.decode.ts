import {
  count,
  type Decoder,
  type FieldError,
  fieldPath,
  integer,
  name,
  nonEmptyList,
  optional,
  refine,
  required,
  restrictingField,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { limitErrors } from '../../fields/limits.ts';
import { anyHostViolation, isDnsLabel, partialWildcardWarning } from '../../fields/names.ts';
import { scopedHostPattern } from '../../fields/patterns.ts';
import * as violation from '../../fields/violation.ts';
import { bindViolation, duplicateErrors, hasUnixScheme, scopedHostText, selectorLabels } from '../field-rules.ts';
import { maxServerHosts, maxServers } from '../object-limits.ts';
import { portProtocol, protocolPattern } from '../port-protocol.ts';
import type { Gateway, Server, ServerPort } from './gateway.ts';
import { serverTls, serverTlsWarnings } from './server-tls.decode.ts';

const serverPort = struct<ServerPort>({
  number: required(integer(0, 65535)),
  name: required(name),
  protocol: required(portProtocol(['UDP', 'HTTP_PROXY'])),
  targetPort: withoutEffect(optional(count), 'the Service of the gateway determines the port'),
});

const server: Decoder<Server> = withSchemaValidation(
  refine(
    struct<Omit<Server, 'closedReason'>>({
      name: optional(name),
      port: required(serverPort),
      bind: optional(refine(name, (bind, path) => violation.errorsAt(path, bindViolation(bind)))),
      hosts: required(
        nonEmptyList(withSchemaValidation(scopedHostText(gatewayHostViolation), { pattern: scopedHostPattern })),
      ),
      ...restrictions({ tls: restrictingField(optional(serverTls)) }),
      defaultEndpoint: withoutEffect(optional(name), 'a VirtualService bound to the Gateway selects the destination'),
    }),
    serverErrors,
  ),
  {
    anyOf: [
      {
        properties: {
          port: { properties: { protocol: { pattern: protocolPattern(['HTTPS', 'TLS', 'UDP', 'HTTP_PROXY']) } } },
        },
      },
      { required: ['tls'] },
    ],
  },
);

export const gateway: Decoder<Gateway> = refine(
  struct<Gateway>({ servers: required(nonEmptyList(server, maxServers)), selector: withDefault(selectorLabels, {}) }),
  ({ servers }, path) =>
    limitErrors(
      fieldPath(path, 'servers'),
      servers.reduce((sum, { hosts }) => sum + hosts.length, 0),
      maxServerHosts,
      'hosts of all servers',
    ),
  (spec, path) => [
    ...duplicateErrors(
      spec.servers,
      (item) => item.port.name,
      (index) => `${fieldPath(path, 'servers')}[${index}].port.name`,
      'port name',
    ),
    ...duplicateErrors(
      spec.servers,
      (item) => item.name,
      (index) => `${fieldPath(path, 'servers')}[${index}].name`,
      'server name',
    ),
  ],
);

function gatewayHostViolation(text: string): violation.FieldViolation | undefined {
  const hostParts = text.split('/');
  if (hostParts.length > 2) return violation.mustBe('a host or namespace/host', text);
  const namespace = hostParts.length === 2 ? hostParts[0]! : '*';
  const host = hostParts.at(-1)!;
  if (namespace !== '*' && namespace !== '.' && !isDnsLabel(namespace)) {
    return violation.mustBe('a host with a namespace, "." or "*" before the slash', namespace);
  }
  if (host !== '*' && !host.includes('.')) return violation.mustBe('a fully qualified host name', host);
  return anyHostViolation(host);
}

function serverErrors(spec: Server, path: string): FieldError[] {
  const { port, tls } = spec;
  const isTlsPort = port.protocol === 'HTTPS' || port.protocol === 'TLS';
  const onSocket = hasUnixScheme(spec.bind);
  const redirectsOnly = tls?.httpsRedirect === true && port.protocol === 'HTTP';
  const errors = violation.errorsAt(
    `${fieldPath(path, 'port')}.number`,
    port.number === 0 && !onSocket
      ? violation.outOfRange('from 1 to 65535 (0 only with a unix bind)', port.number)
      : undefined,
  );
  if (port.number !== 0 && onSocket) {
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'port')}.number`,
        violation.outOfRange('0 with a unix bind', port.number),
      ),
    );
  }
  if (isTlsPort && tls === undefined) {
    errors.push(violation.fieldError(fieldPath(path, 'tls'), violation.missingValue(`with protocol ${port.protocol}`)));
  }
  if (!isTlsPort && tls !== undefined && !redirectsOnly) {
    errors.push(
      violation.fieldError(fieldPath(path, 'tls'), violation.excludedField(`with protocol ${port.protocol}`)),
    );
  }
  for (const [index, host] of spec.hosts.entries()) {
    // Envoy rejects a listener if a filter chain matches the SNI by a partial wildcard.
    if (!isTlsPort || partialWildcardWarning(host.slice(host.indexOf('/') + 1)) === undefined) continue;
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'hosts')}[${index}]`,
        violation.mustBe(`*, or *. and a domain, or a host name with protocol ${port.protocol}`, host),
      ),
    );
  }
  if (port.protocol === 'HTTP' && redirectsOnly && tls.mode !== 'PASSTHROUGH') {
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'tls')}.mode`,
        violation.excludedField('together with httpsRedirect on protocol HTTP'),
      ),
    );
  }
  return errors;
}

export function gatewayWarnings(spec: Gateway): FieldError[] {
  return spec.servers.flatMap(({ tls, port, hosts }, index) => {
    const partialWildcards = hosts.flatMap((host, hostIndex) =>
      violation.errorsAt(
        `servers[${index}].hosts[${hostIndex}]`,
        partialWildcardWarning(host.slice(host.indexOf('/') + 1)),
      ),
    );
    if (tls === undefined) return partialWildcards;
    const path = `servers[${index}].tls`;
    const terminatesHttp = port.protocol !== 'TLS' && !(port.protocol === 'HTTPS' && tls.mode.endsWith('PASSTHROUGH'));
    const hasUnusedRedirect = tls.httpsRedirect === true && !terminatesHttp;
    return [
      ...partialWildcards,
      ...violation.errorsAt(
        `${path}.httpsRedirect`,
        hasUnusedRedirect ? violation.ineffectiveField('the server does not decrypt requests') : undefined,
      ),
      ...serverTlsWarnings(tls, path),
    ];
  });
}

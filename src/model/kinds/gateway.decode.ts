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
  restricting,
  restrictions,
  struct,
  withDefault,
} from '../fields/decode.ts';
import { inSchema } from '../fields/description.ts';
import { withoutEffect } from '../fields/effect.ts';
import { limitErrors } from '../fields/limits.ts';
import { anyHostMistake, isDnsLabel, partialWildcardWarning } from '../fields/names.ts';
import { scopedHostPattern } from '../fields/patterns.ts';
import {
  bindMistake,
  meansUnixAddress,
  mistakeAt,
  repetitions,
  scopedHostText,
  selectorLabels,
} from './field-rules.ts';
import type { Gateway, Server, ServerPort } from './gateway.ts';
import { maxServerHosts, maxServers } from './object-limits.ts';
import { portProtocol, protocolPattern } from './port-protocol.ts';
import { serverTls, serverTlsWarnings } from './server-tls.decode.ts';

const serverPort = struct<ServerPort>({
  number: required(integer(0, 65535)),
  name: required(name),
  protocol: required(portProtocol(['UDP', 'HTTP_PROXY'])),
  targetPort: withoutEffect(optional(count), 'the port of the Service in front of the gateway decides'),
});

const server: Decoder<Server> = inSchema(
  refine(
    struct<Omit<Server, 'closed'>>({
      name: optional(name),
      port: required(serverPort),
      bind: optional(refine(name, (bind, path) => mistakeAt(path, bindMistake(bind)))),
      hosts: required(nonEmptyList(inSchema(scopedHostText(gatewayHostMistake), { pattern: scopedHostPattern }))),
      ...restrictions({ tls: restricting(optional(serverTls)) }),
      defaultEndpoint: withoutEffect(
        optional(name),
        'a VirtualService that is bound to the Gateway says where requests go',
      ),
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

/** A Gateway's `spec`. */
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
    ...repetitions(
      spec.servers,
      (item) => item.port.name,
      (index) => `${fieldPath(path, 'servers')}[${index}].port.name`,
      'port name',
    ),
    ...repetitions(
      spec.servers,
      (item) => item.name,
      (index) => `${fieldPath(path, 'servers')}[${index}].name`,
      'server name',
    ),
  ],
);

/** `[namespace/]host`. */
function gatewayHostMistake(text: string): string | undefined {
  const parts = text.split('/');
  if (parts.length > 2) return `must be a host or namespace/host, not ${JSON.stringify(text)}`;
  const namespace = parts.length === 2 ? parts[0]! : '*';
  const host = parts.at(-1)!;
  if (namespace !== '*' && namespace !== '.' && !isDnsLabel(namespace)) {
    return `must have a namespace, "." or "*" before the slash, not ${JSON.stringify(namespace)}`;
  }
  if (host !== '*' && !host.includes('.')) return `must be a full host name: ${JSON.stringify(host)} has no dot`;
  return anyHostMistake(host);
}

function serverErrors(spec: Server, path: string): FieldError[] {
  const { port, tls } = spec;
  const secure = port.protocol === 'HTTPS' || port.protocol === 'TLS';
  const onSocket = meansUnixAddress(spec.bind);
  const redirectsOnly = tls?.httpsRedirect === true && port.protocol === 'HTTP';
  const errors = mistakeAt(
    `${fieldPath(path, 'port')}.number`,
    port.number === 0 && !onSocket ? 'must be from 1 to 65535 (0 only with a unix bind)' : undefined,
  );
  if (port.number !== 0 && onSocket) {
    errors.push({
      path: `${fieldPath(path, 'port')}.number`,
      message: 'must be 0 with a unix bind, which has no port',
    });
  }
  if (secure && tls === undefined) {
    errors.push({ path: fieldPath(path, 'tls'), message: `is required with protocol ${port.protocol}` });
  }
  if (!secure && tls !== undefined && !redirectsOnly) {
    errors.push({ path: fieldPath(path, 'tls'), message: `must not be given with protocol ${port.protocol}` });
  }
  for (const [index, host] of spec.hosts.entries()) {
    // Envoy refuses a listener whose chains match the SNI by one.
    if (!secure || partialWildcardWarning(host.slice(host.indexOf('/') + 1)) === undefined) continue;
    errors.push({
      path: `${fieldPath(path, 'hosts')}[${index}]`,
      message: `must be *, or *. and a domain, or a host name with protocol ${port.protocol}: an SNI is matched by no other`,
    });
  }
  if (port.protocol === 'HTTP' && redirectsOnly && tls.mode !== 'PASSTHROUGH') {
    errors.push({ path: `${fieldPath(path, 'tls')}.mode`, message: 'must not be given with httpsRedirect on HTTP' });
  }
  return errors;
}

/** What is allowed and probably not meant (§4.5). */
export function gatewayWarnings(spec: Gateway): FieldError[] {
  return spec.servers.flatMap(({ tls, port, hosts }, index) => {
    const partial = hosts.flatMap((host, place) =>
      mistakeAt(`servers[${index}].hosts[${place}]`, partialWildcardWarning(host.slice(host.indexOf('/') + 1))),
    );
    if (tls === undefined) return partial;
    const path = `servers[${index}].tls`;
    const seesRequests = port.protocol !== 'TLS' && !(port.protocol === 'HTTPS' && tls.mode.endsWith('PASSTHROUGH'));
    const unseen = tls.httpsRedirect === true && !seesRequests;
    return [
      ...partial,
      ...mistakeAt(`${path}.httpsRedirect`, unseen ? 'has no effect: the server sees no requests' : undefined),
      ...serverTlsWarnings(tls, path),
    ];
  });
}

/**
 * Validates Envoy access log formats (Envoy documentation, "Command operators"). Envoy 1.40 rejects a listener whose format has an unknown command.
 */
import * as violation from './violation.ts';

type Parameters = 'none' | 'required' | 'optional';

const commands: ReadonlyMap<string, Parameters> = new Map([
  ...withParameters(
    'required',
    `
    REQ RESP TRAILER REQUEST_HEADER RESPONSE_HEADER RESPONSE_TRAILER METADATA DYNAMIC_METADATA CLUSTER_METADATA
    UPSTREAM_METADATA FILTER_STATE UPSTREAM_FILTER_STATE ENVIRONMENT CEL REQ_WITHOUT_QUERY QUERY_PARAM
    COMMON_DURATION`,
  ),
  ...withParameters(
    'optional',
    `
    START_TIME EMIT_TIME START_TIME_LOCAL EMIT_TIME_LOCAL DOWNSTREAM_PEER_CERT_V_START
    DOWNSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_PEER_CERT_V_END GRPC_STATUS PATH
    RESPONSE_CODE_DETAILS DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT
    DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT
    DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT`,
  ),
  ...withParameters(
    'none',
    `
    LOCAL_REPLY_BODY DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_ADDRESS UPSTREAM_HOSTS_ATTEMPTED
    UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_HOST_NAMES_ATTEMPTED PROTOCOL UPSTREAM_PROTOCOL RESPONSE_CODE
    RESPONSE_FLAGS RESPONSE_FLAGS_LONG CONNECTION_TERMINATION_DETAILS UPSTREAM_TRANSPORT_FAILURE_REASON
    DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_DETECTED_CLOSE_TYPE
    UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_DETECTED_CLOSE_TYPE BYTES_RECEIVED BYTES_SENT BYTES_RETRANSMITTED
    PACKETS_RETRANSMITTED DOWNSTREAM_WIRE_BYTES_SENT DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT
    DOWNSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_WIRE_BYTES_SENT UPSTREAM_WIRE_BYTES_RECEIVED
    UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HEADER_BYTES_RECEIVED DURATION REQUEST_DURATION REQUEST_TX_DURATION
    RESPONSE_DURATION RESPONSE_TX_DURATION DOWNSTREAM_HANDSHAKE_DURATION ROUNDTRIP_DURATION UPSTREAM_HOST
    UPSTREAM_HOST_NAME UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW
    UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_PORT UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_PORT
    UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_TLS_CIPHER UPSTREAM_TLS_VERSION UPSTREAM_TLS_SESSION_ID
    UPSTREAM_PEER_ISSUER UPSTREAM_PEER_CERT UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_LOCAL_URI_SAN
    UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_POOL_READY_DURATION DOWNSTREAM_LOCAL_ADDRESS
    DOWNSTREAM_LOCAL_PORT DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_REMOTE_PORT
    DOWNSTREAM_DIRECT_REMOTE_PORT CONNECTION_ID STREAM_ID TRACE_ID REQUESTED_SERVER_NAME ROUTE_NAME
    VIRTUAL_CLUSTER_NAME DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_IP_SAN
    DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_FINGERPRINT_256
    DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_CERT DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_LOCAL_DNS_SAN
    DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_VERSION
    TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT HOSTNAME FILTER_CHAIN_NAME ACCESS_LOG_TYPE UNIQUE_ID
    GRPC_STATUS_NUMBER`,
  ),
]);

function withParameters(parameters: Parameters, names: string): [string, Parameters][] {
  return names
    .trim()
    .split(/\s+/)
    .map((name) => [name, parameters]);
}

const kindsOfMetadata = [
  'DYNAMIC',
  'CLUSTER',
  'ROUTE',
  'UPSTREAM_HOST',
  'LISTENER',
  'VIRTUAL_HOST',
  'LISTENER_FILTER_CHAIN',
];

const options: ReadonlyMap<string, readonly string[]> = new Map([
  ['GRPC_STATUS', ['CAMEL_STRING', 'SNAKE_STRING', 'NUMBER']],
  ['PATH', ['WQ', 'NQ', 'WQ:ORIG', 'NQ:ORIG', 'WQ:PATH', 'NQ:PATH', 'WQ:ORIG_OR_PATH', 'NQ:ORIG_OR_PATH']],
]);

const command = /%(?:([A-Z0-9_]+)(?:\(((?:[^)]|\)(?![:%]))*)\))?(?::(\d+))?)?%/y;

export function logFormatViolation(format: string): violation.FieldViolation | undefined {
  for (let percentIndex = format.indexOf('%'); percentIndex !== -1; percentIndex = format.indexOf('%', percentIndex)) {
    command.lastIndex = percentIndex;
    const commandMatch = command.exec(format);
    if (commandMatch === null)
      return violation.malformedValue(
        '% must begin a command operator such as %PROTOCOL%, or be written as %%',
        format.slice(percentIndex, percentIndex + 20),
      );
    const commandError = commandViolation(commandMatch);
    if (commandError !== undefined) return commandError;
    percentIndex += commandMatch[0].length;
  }
  return undefined;
}

function commandViolation([commandText, name, parameters, length]: RegExpExecArray):
  | violation.FieldViolation
  | undefined {
  // `%%` is an escaped percent sign.
  if (name === undefined) return undefined;
  const parameterRule = commands.get(name);
  if (parameterRule === undefined)
    return violation.malformedValue(`unknown command operator ${commandText}`, commandText);
  if (parameterRule === 'required' && !parameters)
    return violation.malformedValue(`${commandText} needs parameters in parentheses`, commandText);
  if (parameterRule === 'none' && (parameters !== undefined || length !== undefined)) {
    return violation.malformedValue(`${commandText} accepts no parameters and no length`, commandText);
  }
  const allowedParameters = options.get(name);
  if (parameters && allowedParameters !== undefined && !allowedParameters.includes(parameters)) {
    return violation.malformedValue(
      `${commandText} accepts only the parameters ${allowedParameters.join(', ')}`,
      commandText,
    );
  }
  const kind = parameters?.split(':', 1)[0] ?? '';
  if (name === 'METADATA' && !kindsOfMetadata.includes(kind))
    return violation.malformedValue(
      `${commandText} has the unknown metadata type ${JSON.stringify(kind)}`,
      commandText,
    );
  if (/^(REQ|RESP|TRAILER)$/.test(name) && parameters!.split('?').length > 2) {
    return violation.malformedValue(`${commandText} accepts only one alternative after "?"`, commandText);
  }
  return undefined;
}

function _excerpt(format: string, start: number): string {
  return JSON.stringify(format.slice(start, start + 20));
}

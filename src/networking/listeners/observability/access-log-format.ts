import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { SubstitutionFormatStringSchema } from '../../../gen/envoy/config/core/v3/substitution_format_string_pb.ts';
import { ReqWithoutQuerySchema } from '../../../gen/envoy/extensions/formatter/req_without_query/v3/req_without_query_pb.ts';
import type { LogFormat } from '../../../model/mesh/extension-providers.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';

/** Default text format, without the final newline. */
export const textFormat = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% \
%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" \
%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" \
"%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% \
%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%`;

const jsonFormat: JsonObject = {
  start_time: '%START_TIME%',
  route_name: '%ROUTE_NAME%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
  protocol: '%PROTOCOL%',
  response_code: '%RESPONSE_CODE%',
  response_flags: '%RESPONSE_FLAGS%',
  response_code_details: '%RESPONSE_CODE_DETAILS%',
  connection_termination_details: '%CONNECTION_TERMINATION_DETAILS%',
  bytes_received: '%BYTES_RECEIVED%',
  bytes_sent: '%BYTES_SENT%',
  duration: '%DURATION%',
  upstream_service_time: '%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%',
  x_forwarded_for: '%REQ(X-FORWARDED-FOR)%',
  user_agent: '%REQ(USER-AGENT)%',
  request_id: '%REQ(X-REQUEST-ID)%',
  authority: '%REQ(:AUTHORITY)%',
  upstream_host: '%UPSTREAM_HOST%',
  upstream_cluster: '%UPSTREAM_CLUSTER_RAW%',
  upstream_local_address: '%UPSTREAM_LOCAL_ADDRESS%',
  downstream_local_address: '%DOWNSTREAM_LOCAL_ADDRESS%',
  downstream_remote_address: '%DOWNSTREAM_REMOTE_ADDRESS%',
  requested_server_name: '%REQUESTED_SERVER_NAME%',
  upstream_transport_failure_reason: '%UPSTREAM_TRANSPORT_FAILURE_REASON%',
};

type FormatInit = Init<typeof SubstitutionFormatStringSchema>;

export function formatOfMesh({ accessLogEncoding, accessLogFormat }: MeshConfig): FormatInit {
  return accessLogEncoding === 'JSON'
    ? jsonFormatInit(customJson(accessLogFormat) ?? jsonFormat)
    : textFormatInit(accessLogFormat || textFormat);
}

export function formatOfProvider(format: LogFormat | undefined): FormatInit {
  return format?.labels === undefined
    ? textFormatInit(format?.text || textFormat)
    : jsonFormatInit(format.labels as JsonObject);
}

function textFormatInit(format: string): FormatInit {
  const inlineString = format.endsWith('\n') ? format : `${format}\n`;
  return {
    format: { case: 'textFormatSource', value: { specifier: { case: 'inlineString', value: inlineString } } },
    formatters: formattersOf(format),
  };
}

function jsonFormatInit(format: JsonObject): FormatInit {
  return { format: { case: 'jsonFormat', value: format }, formatters: formattersOf(JSON.stringify(format)) };
}

const queryFormatter = typedExtension('envoy.formatter.req_without_query', ReqWithoutQuerySchema);

/** Extension that `REQ_WITHOUT_QUERY` requires. */
export function formattersOf(format: string): TypedConfig[] {
  if (!format.includes('%REQ_WITHOUT_QUERY(')) return [];
  return [{ name: queryFormatter.name, typedConfig: queryFormatter.configType.value }];
}

interface TypedConfig {
  readonly name: string;
  readonly typedConfig: TypedExtension['configType']['value'];
}

/** Returns `undefined` for invalid JSON, to which the default format applies. The error was reported when the mesh configuration was read. */
function customJson(format: string): JsonObject | undefined {
  if (format === '') return undefined;
  try {
    const value = JSON.parse(format) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

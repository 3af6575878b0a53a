/** The mesh's access log (spec/discovery.md §8.11). */
import type { JsonObject } from '@bufbuild/protobuf';
import { FileAccessLogSchema } from '../../gen/envoy/extensions/access_loggers/file/v3/file_pb.ts';
import { type TypedExtension, typedExtension } from '../any.ts';
import type { ConnectionContext } from '../connection-context.ts';

const textFormat = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% \
%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" \
%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" \
"%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% \
%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%
`;

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

/** None unless the mesh names a file. */
export function accessLogs({ push: { mesh } }: ConnectionContext): TypedExtension[] {
  if (mesh.accessLogFile === '') return [];
  const format =
    mesh.accessLogEncoding === 'JSON'
      ? { case: 'jsonFormat' as const, value: customJson(mesh.accessLogFormat) ?? jsonFormat }
      : {
          case: 'textFormatSource' as const,
          value: {
            specifier: { case: 'inlineString' as const, value: withNewline(mesh.accessLogFormat || textFormat) },
          },
        };
  return [
    typedExtension('envoy.access_loggers.file', FileAccessLogSchema, {
      path: mesh.accessLogFile,
      accessLogFormat: { case: 'logFormat', value: { format } },
    }),
  ];
}

function withNewline(format: string): string {
  return format.endsWith('\n') ? format : `${format}\n`;
}

/** A format that is no JSON object was reported when the mesh configuration was read; the default is used then. */
function customJson(format: string): JsonObject | undefined {
  if (format === '') return undefined;
  try {
    const value: unknown = JSON.parse(format);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

/** All message types that generated resources may contain in packed form; used for conversion to JSON. */
import { createRegistry, type Registry } from '@bufbuild/protobuf';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { FileAccessLogSchema } from '../../gen/envoy/extensions/access_loggers/file/v3/file_pb.ts';
import { ClusterConfigSchema as DynamicForwardProxyClusterSchema } from '../../gen/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb.ts';
import { CorsPolicySchema, CorsSchema } from '../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import { FilterConfigSchema as DynamicForwardProxySchema } from '../../gen/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb.ts';
import { ExtAuthzSchema } from '../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import { HTTPFaultSchema } from '../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { FilterConfigSchema as GrpcStatsSchema } from '../../gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.ts';
import { GrpcWebSchema } from '../../gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts';
import { JwtAuthenticationSchema } from '../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { RBACSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { RouterSchema } from '../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { HttpInspectorSchema } from '../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts';
import { OriginalDstSchema } from '../../gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.ts';
import { OriginalSrcSchema } from '../../gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.ts';
import { TlsInspectorSchema } from '../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts';
import { ExtAuthzSchema as NetworkExtAuthzSchema } from '../../gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { MongoProxySchema } from '../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts';
import { RBACSchema as NetworkRbacSchema } from '../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { RedisProxySchema } from '../../gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.ts';
import { FilterConfigSchema as SniDynamicForwardProxySchema } from '../../gen/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb.ts';
import { TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import { CaresDnsResolverConfigSchema } from '../../gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.ts';
import { UriTemplateMatchConfigSchema } from '../../gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.ts';
import { PreviousHostsPredicateSchema } from '../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.ts';
import { PreviousPrioritiesConfigSchema } from '../../gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.ts';
import { ProxyProtocolUpstreamTransportSchema } from '../../gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.ts';
import { RawBufferSchema } from '../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts';
import {
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import { TypedStructSchema } from '../../gen/udpa/type/v1/typed_struct_pb.ts';

export const extensionTypes: Registry = createRegistry(
  ClusterSchema,
  ClusterLoadAssignmentSchema,
  ListenerSchema,
  RouteConfigurationSchema,
  FileAccessLogSchema,
  CorsPolicySchema,
  CorsSchema,
  HTTPFaultSchema,
  GrpcStatsSchema,
  GrpcWebSchema,
  RouterSchema,
  HttpInspectorSchema,
  OriginalDstSchema,
  OriginalSrcSchema,
  TlsInspectorSchema,
  HttpConnectionManagerSchema,
  MongoProxySchema,
  TcpProxySchema,
  ExtAuthzSchema,
  JwtAuthenticationSchema,
  RBACSchema,
  NetworkExtAuthzSchema,
  NetworkRbacSchema,
  UriTemplateMatchConfigSchema,
  RedisProxySchema,
  SniDynamicForwardProxySchema,
  DynamicForwardProxySchema,
  DynamicForwardProxyClusterSchema,
  CaresDnsResolverConfigSchema,
  PreviousHostsPredicateSchema,
  PreviousPrioritiesConfigSchema,
  ProxyProtocolUpstreamTransportSchema,
  RawBufferSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
  HttpProtocolOptionsSchema,
  TypedStructSchema,
);

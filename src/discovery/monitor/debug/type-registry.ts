import { createRegistry, type Registry } from '@bufbuild/protobuf';
import { file_envoy_admin_v3_config_dump } from '../../../gen/envoy/admin/v3/config_dump_pb.ts';
import { file_envoy_admin_v3_config_dump_shared } from '../../../gen/envoy/admin/v3/config_dump_shared_pb.ts';
import { file_envoy_config_cluster_v3_cluster } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { file_envoy_config_endpoint_v3_endpoint } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { file_envoy_config_listener_v3_listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import { file_envoy_config_route_v3_route } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import { file_envoy_extensions_access_loggers_file_v3_file } from '../../../gen/envoy/extensions/access_loggers/file/v3/file_pb.ts';
import { file_envoy_extensions_access_loggers_grpc_v3_als } from '../../../gen/envoy/extensions/access_loggers/grpc/v3/als_pb.ts';
import { file_envoy_extensions_access_loggers_stream_v3_stream } from '../../../gen/envoy/extensions/access_loggers/stream/v3/stream_pb.ts';
import { file_envoy_extensions_clusters_aggregate_v3_cluster } from '../../../gen/envoy/extensions/clusters/aggregate/v3/cluster_pb.ts';
import { file_envoy_extensions_clusters_dynamic_forward_proxy_v3_cluster } from '../../../gen/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb.ts';
import { file_envoy_extensions_common_dynamic_forward_proxy_v3_dns_cache } from '../../../gen/envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb.ts';
import { file_envoy_extensions_common_ratelimit_v3_ratelimit } from '../../../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts';
import { file_envoy_extensions_filters_common_fault_v3_fault } from '../../../gen/envoy/extensions/filters/common/fault/v3/fault_pb.ts';
import { file_envoy_extensions_filters_http_cors_v3_cors } from '../../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import { file_envoy_extensions_filters_http_ext_authz_v3_ext_authz } from '../../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import { file_envoy_extensions_filters_http_fault_v3_fault } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { file_envoy_extensions_filters_http_grpc_stats_v3_config } from '../../../gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.ts';
import { file_envoy_extensions_filters_http_grpc_web_v3_grpc_web } from '../../../gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts';
import { file_envoy_extensions_filters_http_jwt_authn_v3_config } from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { file_envoy_extensions_filters_http_local_ratelimit_v3_local_rate_limit } from '../../../gen/envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit_pb.ts';
import { file_envoy_extensions_filters_http_lua_v3_lua } from '../../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.ts';
import { file_envoy_extensions_filters_http_rbac_v3_rbac } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { file_envoy_extensions_filters_http_router_v3_router } from '../../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { file_envoy_extensions_filters_http_stateful_session_v3_stateful_session } from '../../../gen/envoy/extensions/filters/http/stateful_session/v3/stateful_session_pb.ts';
import { file_envoy_extensions_filters_http_wasm_v3_wasm } from '../../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { file_envoy_extensions_filters_listener_http_inspector_v3_http_inspector } from '../../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts';
import { file_envoy_extensions_filters_listener_original_dst_v3_original_dst } from '../../../gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.ts';
import { file_envoy_extensions_filters_listener_original_src_v3_original_src } from '../../../gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.ts';
import { file_envoy_extensions_filters_listener_proxy_protocol_v3_proxy_protocol } from '../../../gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.ts';
import { file_envoy_extensions_filters_listener_tls_inspector_v3_tls_inspector } from '../../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts';
import { file_envoy_extensions_filters_network_http_connection_manager_v3_http_connection_manager } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { file_envoy_extensions_filters_network_mongo_proxy_v3_mongo_proxy } from '../../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts';
import { file_envoy_extensions_filters_network_rbac_v3_rbac } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { file_envoy_extensions_filters_network_redis_proxy_v3_redis_proxy } from '../../../gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.ts';
import { file_envoy_extensions_filters_network_sni_cluster_v3_sni_cluster } from '../../../gen/envoy/extensions/filters/network/sni_cluster/v3/sni_cluster_pb.ts';
import { file_envoy_extensions_filters_network_tcp_proxy_v3_tcp_proxy } from '../../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import { file_envoy_extensions_load_balancing_policies_common_v3_common } from '../../../gen/envoy/extensions/load_balancing_policies/common/v3/common_pb.ts';
import { file_envoy_extensions_load_balancing_policies_maglev_v3_maglev } from '../../../gen/envoy/extensions/load_balancing_policies/maglev/v3/maglev_pb.ts';
import { file_envoy_extensions_load_balancing_policies_ring_hash_v3_ring_hash } from '../../../gen/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash_pb.ts';
import { file_envoy_extensions_retry_host_previous_hosts_v3_previous_hosts } from '../../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.ts';
import { file_envoy_extensions_retry_priority_previous_priorities_v3_previous_priorities_config } from '../../../gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.ts';
import { file_envoy_extensions_transport_sockets_proxy_protocol_v3_upstream_proxy_protocol } from '../../../gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.ts';
import { file_envoy_extensions_transport_sockets_raw_buffer_v3_raw_buffer } from '../../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts';
import { file_envoy_extensions_transport_sockets_tls_v3_common } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import { file_envoy_extensions_transport_sockets_tls_v3_secret } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { file_envoy_extensions_transport_sockets_tls_v3_tls } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { file_envoy_extensions_upstreams_http_v3_http_protocol_options } from '../../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import { file_envoy_extensions_wasm_v3_wasm } from '../../../gen/envoy/extensions/wasm/v3/wasm_pb.ts';
import { file_udpa_type_v1_typed_struct } from '../../../gen/udpa/type/v1/typed_struct_pb.ts';
import { withCompleteApi } from '../../../model/envoy-api/envoy-api.ts';

const generatedRegistry = (): Registry =>
  createRegistry(
    file_envoy_config_cluster_v3_cluster,
    file_envoy_config_endpoint_v3_endpoint,
    file_envoy_config_listener_v3_listener,
    file_envoy_config_route_v3_route,
    file_envoy_extensions_access_loggers_file_v3_file,
    file_envoy_extensions_access_loggers_grpc_v3_als,
    file_envoy_extensions_access_loggers_stream_v3_stream,
    file_envoy_extensions_clusters_aggregate_v3_cluster,
    file_envoy_extensions_clusters_dynamic_forward_proxy_v3_cluster,
    file_envoy_extensions_common_dynamic_forward_proxy_v3_dns_cache,
    file_envoy_extensions_common_ratelimit_v3_ratelimit,
    file_envoy_extensions_filters_common_fault_v3_fault,
    file_envoy_extensions_filters_http_cors_v3_cors,
    file_envoy_extensions_filters_http_ext_authz_v3_ext_authz,
    file_envoy_extensions_filters_http_fault_v3_fault,
    file_envoy_extensions_filters_http_grpc_stats_v3_config,
    file_envoy_extensions_filters_http_grpc_web_v3_grpc_web,
    file_envoy_extensions_filters_http_jwt_authn_v3_config,
    file_envoy_extensions_filters_http_local_ratelimit_v3_local_rate_limit,
    file_envoy_extensions_filters_http_lua_v3_lua,
    file_envoy_extensions_filters_http_rbac_v3_rbac,
    file_envoy_extensions_filters_http_router_v3_router,
    file_envoy_extensions_filters_http_stateful_session_v3_stateful_session,
    file_envoy_extensions_filters_http_wasm_v3_wasm,
    file_envoy_extensions_filters_listener_http_inspector_v3_http_inspector,
    file_envoy_extensions_filters_listener_original_dst_v3_original_dst,
    file_envoy_extensions_filters_listener_original_src_v3_original_src,
    file_envoy_extensions_filters_listener_proxy_protocol_v3_proxy_protocol,
    file_envoy_extensions_filters_listener_tls_inspector_v3_tls_inspector,
    file_envoy_extensions_filters_network_http_connection_manager_v3_http_connection_manager,
    file_envoy_extensions_filters_network_mongo_proxy_v3_mongo_proxy,
    file_envoy_extensions_filters_network_rbac_v3_rbac,
    file_envoy_extensions_filters_network_redis_proxy_v3_redis_proxy,
    file_envoy_extensions_filters_network_sni_cluster_v3_sni_cluster,
    file_envoy_extensions_filters_network_tcp_proxy_v3_tcp_proxy,
    file_envoy_extensions_load_balancing_policies_common_v3_common,
    file_envoy_extensions_load_balancing_policies_maglev_v3_maglev,
    file_envoy_extensions_load_balancing_policies_ring_hash_v3_ring_hash,
    file_envoy_extensions_retry_host_previous_hosts_v3_previous_hosts,
    file_envoy_extensions_retry_priority_previous_priorities_v3_previous_priorities_config,
    file_envoy_extensions_transport_sockets_proxy_protocol_v3_upstream_proxy_protocol,
    file_envoy_extensions_transport_sockets_raw_buffer_v3_raw_buffer,
    file_envoy_extensions_transport_sockets_tls_v3_common,
    file_envoy_extensions_transport_sockets_tls_v3_secret,
    file_envoy_extensions_transport_sockets_tls_v3_tls,
    file_envoy_extensions_upstreams_http_v3_http_protocol_options,
    file_envoy_extensions_wasm_v3_wasm,
    file_envoy_admin_v3_config_dump,
    file_envoy_admin_v3_config_dump_shared,
    file_udpa_type_v1_typed_struct,
  );

let cachedRegistry: Registry | undefined;

/** Built on first use, because it reads all descriptors. EnvoyFilters may contain other types too. */
export function typeRegistry(): Registry {
  cachedRegistry ??= withCompleteApi(generatedRegistry());
  return cachedRegistry;
}

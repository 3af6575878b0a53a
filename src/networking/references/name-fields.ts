/** Fields of Envoy's API that refer to clusters, secrets and route configurations. name-fields.test.ts compares them with the complete API. */

/** Names of clusters that must exist where the message is used, as field numbers by message type. */
export const clusterFields: Readonly<Record<string, readonly number[]>> = {
  'envoy.config.core.v3.ApiConfigSource': [2],
  'envoy.config.core.v3.GrpcService.EnvoyGrpc': [1],
  'envoy.config.core.v3.HttpUri': [2],
  'envoy.config.route.v3.RouteAction': [1],
  'envoy.config.route.v3.RouteAction.RequestMirrorPolicy': [1],
  'envoy.config.route.v3.WeightedCluster.ClusterWeight': [1],
  'envoy.config.trace.v3.DatadogConfig': [1],
  'envoy.config.trace.v3.LightstepConfig': [1],
  'envoy.config.trace.v3.ZipkinConfig': [1],
  'envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig': [1],
  'envoy.extensions.filters.http.gcp_authn.v3.GcpAuthnFilterConfig': [5],
  'envoy.extensions.filters.network.dubbo_proxy.v3.RouteAction': [1],
  'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes.Route': [3],
  'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes.Route.ReadCommandPolicy': [1],
  'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes.Route.RequestMirrorPolicy': [1],
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy': [2],
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight': [1],
  'envoy.extensions.filters.network.thrift_proxy.v3.RouteAction': [1],
  'envoy.extensions.filters.network.thrift_proxy.v3.RouteAction.RequestMirrorPolicy': [1],
  'envoy.extensions.filters.network.thrift_proxy.v3.WeightedCluster.ClusterWeight': [1],
  'envoy.extensions.filters.udp.udp_proxy.v3.Route': [1],
  'envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig': [2],
  'envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig': [2],
};

export const secretFields: Readonly<Record<string, readonly number[]>> = {
  'envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig': [1],
};

export const routeConfigurationFields: Readonly<Record<string, readonly number[]>> = {
  'envoy.extensions.filters.network.http_connection_manager.v3.Rds': [2],
};

/** Frequent messages that never contain a cluster name. */
export const messagesWithoutClusters: ReadonlySet<string> = new Set([
  'envoy.config.core.v3.Address',
  'envoy.config.core.v3.DataSource',
  'envoy.config.core.v3.HeaderValueOption',
  'envoy.config.core.v3.RuntimeFractionalPercent',
  'envoy.config.listener.v3.FilterChainMatch',
  'envoy.config.route.v3.Decorator',
  'envoy.config.route.v3.DirectResponseAction',
  'envoy.config.route.v3.RedirectAction',
  'envoy.config.route.v3.RouteAction.HashPolicy',
  'google.protobuf.BoolValue',
  'google.protobuf.Duration',
  'google.protobuf.Struct',
  'google.protobuf.UInt32Value',
]);

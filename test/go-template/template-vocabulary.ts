/** Data of bootstraps, and building blocks of random templates. */

export const data = {
  nodeID: 'sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local',
  cluster: 'web.shop',
  region: 'eu-west',
  zone: '',
  sub_zone: 'rack-7',
  localhost: '127.0.0.1',
  wildcard: '::',
  dual_stack: true,
  sts: false,
  nothing: null,
  envoy_status_port: 15021,
  envoy_prometheus_port: 15090,
  zero: 0,
  negative: -42,
  ratio: 0.25,
  large: 123456789.5,
  meta_json_str: '{"NAMESPACE":"shop","LABELS":{"app":"web"}}',
  special: "a\"b\\c<d>'e'&=é\t日本\u0001💥",
  zipkin: '{"address": "zipkin", "port_value": 9411}',
  extraStatTags: ['my_tag', 'request.host', 'a"b'],
  inclusionPrefix: ['cluster_manager', 'server', 'http.{pod_ip}_'],
  numbers: [3, 1, 2],
  mixed: ['a', 1, 2.5, true, null, ['b', 2], { k: 'v' }],
  empty: [],
  none: {},
  metadata: {
    NAMESPACE: 'shop',
    LABELS: { app: 'web', version: 'v1', 'a/b': 'c' },
    INSTANCE_IPS: '10.1.2.3,::1',
    ports: [80, 443],
  },
  config: {
    $struct: {
      ProxyAdminPort: 15000,
      StatusPort: 15020,
      ConfigPath: './etc/istio/proxy',
      DiscoveryAddress: 'istiod.istio-system.svc:15012',
      Concurrency: 2,
      Ratio: 0.5,
      Enabled: true,
      ProxyMetadata: { HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED: 'false', DNS: 'true' },
      ExtraStatTags: ['x', 'y'],
    },
  },
};

export const paths = {
  text: [
    'nodeID',
    'cluster',
    'region',
    'zone',
    'sub_zone',
    'localhost',
    'wildcard',
    'meta_json_str',
    'special',
    'zipkin',
    'config.ConfigPath',
    'config.DiscoveryAddress',
    'metadata.NAMESPACE',
    'metadata.LABELS.app',
    'config.ProxyMetadata.DNS',
  ],
  int: [
    'envoy_status_port',
    'envoy_prometheus_port',
    'zero',
    'negative',
    'config.ProxyAdminPort',
    'config.StatusPort',
    'config.Concurrency',
  ],
  float: ['ratio', 'large', 'config.Ratio'],
  bool: ['dual_stack', 'sts', 'config.Enabled'],
  list: ['extraStatTags', 'inclusionPrefix', 'numbers', 'mixed', 'empty', 'config.ExtraStatTags', 'metadata.ports'],
  map: ['none', 'metadata', 'metadata.LABELS', 'config.ProxyMetadata'],
  /** Absent, nil, or an error. */
  odd: [
    'nothing',
    'missing',
    'missing.deep',
    'metadata.LABELS.missing',
    'nothing.deep',
    'config',
    'config.Missing',
    'cluster.field',
    'config.ProxyMetadata.MISSING',
    'numbers.field',
  ],
};

export type Type = keyof typeof paths;
export const types: readonly Type[] = ['text', 'int', 'float', 'bool', 'list', 'map'];
export const comparable: readonly Type[] = ['text', 'int', 'float', 'bool'];

export const literals = {
  text: ['"a"', '""', '`raw "text" \\n`', '"x\\ty\\"z"', '"\\u00e9\\x41"', '"{{"', '"}}"'],
  int: ['0', '1', '7', '-3', '15021', '0x1F', '0b101', '0o17', '1_000', "'a'", "'\\n'", '+5'],
  float: ['1.5', '-0.25', '1e3', '2.', '.5', '1e21', '1.0', '123456.75'],
  bool: ['true', 'false'],
};

const lists = [
  '$.extraStatTags',
  '$.inclusionPrefix',
  '$.numbers',
  '$.config.ExtraStatTags',
  '(slice $.numbers 1)',
  '$.empty',
  '$.metadata.LABELS',
];
export const ranges = { one: [...lists, '3', '-1', '0'], two: lists };

export const formats: readonly (readonly [format: string, types: readonly Type[]])[] = [
  ...(
    ['%s', '%q', '%v', '%x', '%X', '%10s', '%-10s|', '%.2s', '%+q', '%#q', '% x', '%#x', '%05s', '%8.3s|'] as const
  ).map((format) => [format, ['text']] as const),
  ...(
    [
      '%d',
      '%v',
      '%5d',
      '%-5d|',
      '%05d',
      '%x',
      '%#x',
      '%X',
      '%o',
      '%#o',
      '%O',
      '%b',
      '%c',
      '%q',
      '%U',
      '%+d',
      '% d',
      '%.4d',
      '%8.3d',
    ] as const
  ).map((format) => [format, ['int']] as const),
  ...(
    ['%f', '%.2f', '%e', '%g', '%v', '%8.3f', '%-9.1f|', '%+.1e', '%G', '%06.2f', '%.3g', '%F', '%E', '%#g'] as const
  ).map((format) => [format, ['float']] as const),
  ...(['%t', '%v', '%6t'] as const).map((format) => [format, ['bool']] as const),
  ...(['%v', '%s', '%q', '%d', '%#v', '%+v', '%T'] as const).map((format) => [format, ['list']] as const),
  ...(['%v', '%s', '%#v', '%T'] as const).map((format) => [format, ['map']] as const),
  ...([
    ['%s-%d', ['text', 'int']],
    ['%s=%s;%%', ['text', 'text']],
    ['%[2]s %[1]s', ['text', 'text']],
    ['%[1]d %[1]x', ['int']],
    ['%*d', ['int', 'int']],
    ['%d', ['text']],
    ['%s', ['int']],
    ['%z', ['int']],
    ['%s %s', ['text']],
    ['%s', ['text', 'int']],
    ['%T', ['text']],
    ['%T', ['int']],
    ['%d%', ['int']],
    ['%t', ['float']],
    ['%v', ['odd']],
    ['%s', ['odd']],
    ['%!', ['int']],
    ['100%', []],
  ] as const),
];

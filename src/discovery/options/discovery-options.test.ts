import { availableParallelism, totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import { maxServedStreamsForHeap } from '../xds/stream/stream-shares.ts';
import type { DiscoveryFlags } from './discovery-flags.ts';
import { resolveDiscoveryOptions } from './discovery-options.ts';

const resolve = (flags: DiscoveryFlags = {}, env: NodeJS.ProcessEnv = {}, openFiles = Number.POSITIVE_INFINITY) =>
  resolveDiscoveryOptions({ registries: '', ...flags }, env, openFiles);

describe('resolveDiscoveryOptions', () => {
  it('applies the defaults of Istio', () => {
    expect(resolve()).toMatchObject({
      configDir: '',
      meshConfigFile: './etc/istio/config/mesh',
      networksConfigFile: './etc/istio/config/meshNetworks',
      domain: 'cluster.local',
      clusterId: 'Kubernetes',
      grpcAddress: { host: '', port: 15010 },
      httpAddresses: [
        { host: '', port: 8080 },
        { host: '', port: 15014 },
      ],
      shutdownMs: 10_000,
      keepaliveIntervalMs: 30_000,
      keepaliveTimeoutMs: 10_000,
      maxConnectionAgeMs: 0,
      push: { debounceAfterMs: 100, debounceMaxMs: 10_000, debounceEndpoints: true },
      cacheEntries: Number.POSITIVE_INFINITY,
      warnings: [],
    });
  });

  it('prefers flags over environment variables', () => {
    const env = { CLUSTER_ID: 'east', GRPC_KEEPALIVE_INTERVAL: '5s' };
    expect(resolve({}, env)).toMatchObject({ clusterId: 'east', keepaliveIntervalMs: 5_000 });
    expect(resolve({ clusterID: 'west', keepaliveInterval: '7s' }, env)).toMatchObject({
      clusterId: 'west',
      keepaliveIntervalMs: 7_000,
    });
  });

  it('reads the debounce times from the environment', () => {
    const env = { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_DEBOUNCE_MAX: '1s', PILOT_ENABLE_EDS_DEBOUNCE: 'false' };
    expect(resolve({}, env).push).toEqual({ debounceAfterMs: 10, debounceMaxMs: 1_000, debounceEndpoints: false });
  });

  it('warns about an invalid or empty variable, and uses the default', () => {
    const options = resolve(
      {},
      { PILOT_DEBOUNCE_AFTER: 'soon', PILOT_ENABLE_EDS_DEBOUNCE: '', PILOT_XDS_CACHE_SIZE: 'x' },
    );
    expect(options.push).toMatchObject({ debounceAfterMs: 100, debounceEndpoints: true });
    expect(options.warnings).toHaveLength(2);
    expect(options.warnings).toContainEqual({
      ...{ event: 'option.defaulted', setting: 'PILOT_DEBOUNCE_AFTER', value: 'soon' },
      ...{ default: '100ms', reason: 'must be a duration such as 300ms, 30s or 1h30m' },
    });
  });

  it('disables caching of all resources if the cache is disabled', () => {
    expect(resolve({}, { PILOT_ENABLE_XDS_CACHE: 'false' }).cacheEntries).toBe(0);
  });

  it('limits the cache to a quarter of the memory and, if configured, to a number of entries', () => {
    expect(resolve().cacheEntries).toBe(Number.POSITIVE_INFINITY);
    expect(resolve().cacheBytes).toBeGreaterThan(1_000_000);
    expect(resolve().cacheBytes).toBeLessThanOrEqual(totalmem() / 4);
    const options = resolve({}, { PILOT_XDS_CACHE_SIZE: '500', PILOT_XDS_CACHE_BYTES: '1000000' });
    expect(options).toMatchObject({ cacheEntries: 500, cacheBytes: 1_000_000 });
  });

  it('limits new streams only by load if no rate is configured', () => {
    expect(resolve().streamsPerSecond).toBe(0);
    expect(resolve({}, { PILOT_MAX_REQUESTS_PER_SECOND: '7' }).streamsPerSecond).toBe(7);
  });

  it('reads client limits from the environment, and raises 0 to 1', () => {
    expect(resolve().clientLimits).toEqual({
      maxServedStreams: maxServedStreamsForHeap(),
      maxNames: 200_000,
      unidentified: {
        maxConnections: 60_000,
        maxIdleConnections: 4_096,
        maxPerAddress: 10_000,
        maxIdlePerAddress: 512,
      },
      addressPace: { perSecond: 200, burst: 2_000 },
    });
    const configuredOptions = resolve(
      {},
      {
        PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS: '20000',
        PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS: '500',
        PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS: '0',
        PILOT_XDS_MAX_NAMES_PER_STREAM: '1e400',
        PILOT_XDS_MAX_STREAMS: '2000',
        PILOT_XDS_MAX_CONNECTIONS: '-1',
      },
    );
    expect(configuredOptions.clientLimits).toMatchObject({
      maxServedStreams: 2_000,
      maxNames: 200_000,
      unidentified: { maxConnections: 60_000, maxPerAddress: 20_000, maxIdlePerAddress: 512 },
      addressPace: { perSecond: 500, burst: 5_000 },
    });
    expect(configuredOptions.warnings).toHaveLength(3);
  });

  it('limits connections to the number of open files minus a reserve, and logs this', () => {
    const limitsFor = (openFiles: number, env: NodeJS.ProcessEnv = {}) => {
      const { clientLimits, notes } = resolve({}, env, openFiles);
      const { maxConnections, maxIdleConnections } = clientLimits.unidentified ?? {};
      return [
        maxConnections,
        maxIdleConnections,
        notes.filter(({ event }) => event === 'option.connectionsLimited').length,
      ];
    };
    expect(limitsFor(1_048_576)).toEqual([60_000, 4_096, 0]);
    expect(limitsFor(20_000)).toEqual([18_976, 4_096, 1]);
    expect(limitsFor(1_024)).toEqual([512, 256, 1]);
    expect(limitsFor(1)).toEqual([1, 1, 1]);
    expect(limitsFor(1_024, { PILOT_XDS_MAX_CONNECTIONS: '100' })).toEqual([100, 50, 0]);
  });

  it('limits HTTP connections so that half of the remaining open files stay available', () => {
    const httpConnectionsFor = (openFiles?: number): number => resolve({}, {}, openFiles).httpConnections;
    expect([
      httpConnectionsFor(),
      httpConnectionsFor(20_000),
      httpConnectionsFor(1_024),
      httpConnectionsFor(256),
      httpConnectionsFor(1),
    ]).toEqual([256, 256, 128, 32, 1]);
  });

  it('reads the limits of configuration files from the environment, and raises 0 to 1', () => {
    const defaultLimits = {
      ...{ maxFileBytes: 8_388_608, maxBytes: 268_435_456, maxEntries: 100_000 },
      maxExportedPerNamespace: 10_000,
      maxGatewayRoutesPerNamespace: 20_000,
      maxEndpointsPerNamespace: 65_536,
    };
    expect(resolve().configLimits).toEqual(defaultLimits);
    const limitVariables = {
      ...{ PILOT_CONFIG_MAX_FILE_BYTES: '1000', PILOT_CONFIG_MAX_BYTES: '0', PILOT_CONFIG_MAX_ENTRIES: '50' },
      PILOT_MAX_EXPORTED_PER_NAMESPACE: '7',
      PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE: '9',
      PILOT_MAX_ENDPOINTS_PER_NAMESPACE: '8',
    };
    expect(resolve({}, limitVariables).configLimits).toEqual({
      ...defaultLimits,
      ...{
        maxFileBytes: 1_000,
        maxEntries: 50,
        maxExportedPerNamespace: 7,
        maxGatewayRoutesPerNamespace: 9,
        maxEndpointsPerNamespace: 8,
      },
    });
    expect(resolve({}, limitVariables).warnings).toMatchObject([
      { event: 'option.defaulted', setting: 'PILOT_CONFIG_MAX_BYTES' },
    ]);
  });

  it('keeps the defaults of limits that are configured as 0, with warnings', () => {
    const { maxConcurrentStreams, maxRequestBytes, warnings } = resolve(
      {},
      { ISTIO_GPRC_MAXSTREAMS: '0', ISTIO_GPRC_MAXRECVMSGSIZE: '0' },
    );
    expect([maxConcurrentStreams, maxRequestBytes]).toEqual([100_000, 4 * 1024 * 1024]);
    expect(warnings).toHaveLength(2);
  });

  it('warns about a duplicate registry', () => {
    const { registries, warnings } = resolve({ registries: 'Memory, Kubernetes,Memory' });
    expect(registries).toEqual(['Memory', 'Kubernetes']);
    expect(warnings).toMatchObject([{ event: 'option.ignored', setting: '--registries', value: 'Memory' }]);
    expect(resolveDiscoveryOptions({}, {}).registries).toEqual(['Kubernetes']);
  });

  it('uses the namespace from the flag or, without the flag, the namespace of the pod', () => {
    expect(resolve()).toMatchObject({ namespace: 'istio-system', clusterRegistriesNamespace: 'istio-system' });
    expect(resolve({}, { POD_NAMESPACE: 'mesh' })).toMatchObject({
      namespace: 'mesh',
      clusterRegistriesNamespace: 'mesh',
    });
    expect(resolve({ namespace: 'a', clusterRegistriesNamespace: 'b' }, { POD_NAMESPACE: 'mesh' })).toMatchObject({
      namespace: 'a',
      clusterRegistriesNamespace: 'b',
    });
  });

  it('derives the number of concurrent pushes from the number of processors if it is not configured', () => {
    expect(resolve().pushThrottle).toBe(Math.min(15 + 5 * availableParallelism(), 100));
    expect(resolve({}, { PILOT_PUSH_THROTTLE: '3' }).pushThrottle).toBe(3);
    expect(resolve({}, { PILOT_PUSH_THROTTLE: '0' }).pushThrottle).toBe(resolve().pushThrottle);
  });

  it('serves profiles unless they are disabled', () => {
    expect(resolve().profile).toBe(true);
    expect(resolve({ profile: true }).profile).toBe(true);
    expect(resolve({ profile: 'false' }).profile).toBe(false);
    expect(() => resolve({ profile: 'perhaps' })).toThrow('--profile: must be true or false, got perhaps');
  });

  it('lists the Istio variables that have no effect', () => {
    expect(resolve({}, { V2_REFRESH: '1s', JWT_POLICY: '', PILOT_CERT_PROVIDER: 'istiod' }).warnings).toEqual([
      { event: 'option.withoutEffect', settings: 'V2_REFRESH, PILOT_CERT_PROVIDER' },
    ]);
  });

  it('reads cluster aliases, and rejects an alias for two clusters', () => {
    expect(resolve({ clusterAliases: 'a=one,b=two' }).clusterAliases).toEqual({ a: 'one', b: 'two' });
    expect(() => resolve({ clusterAliases: 'a=one,b=one' })).toThrow('cluster one has two aliases');
    expect(() => resolve({ clusterAliases: 'a' })).toThrow('--clusterAliases: must be ALIAS=CLUSTER,…, got "a"');
  });

  it('rejects invalid durations, and connection ages below 1 s', () => {
    expect(() => resolve({ shutdownDuration: 'ten' })).toThrow(
      '--shutdownDuration: must be a duration such as 300ms, 30s or 1h30m, got "ten"',
    );
    expect(() => resolve({ keepaliveMaxServerConnectionAge: '10ms' })).toThrow('at least 1s');
    expect(resolve({ keepaliveMaxServerConnectionAge: '30m' }).maxConnectionAgeMs).toBe(1_800_000);
  });

  it('limits timers to 24 days, because Node.js fires longer ones immediately', () => {
    expect(resolve({ keepaliveMaxServerConnectionAge: '2562047h47m16.854775807s' }).maxConnectionAgeMs).toBe(0);
    for (const flag of ['shutdownDuration', 'keepaliveInterval', 'keepaliveTimeout'] as const) {
      expect(() => resolve({ [flag]: '577h' })).toThrow(`--${flag}: must be at most 576h, got 577h`);
    }
    const { keyRefreshMs, registration, warnings } = resolve(
      {},
      { PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: '720h', PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '1000h' },
    );
    expect([keyRefreshMs, registration.graceMs]).toEqual([576 * 3_600_000, 576 * 3_600_000]);
    expect(warnings).toEqual([
      { event: 'option.capped', setting: 'PILOT_WORKLOAD_ENTRY_GRACE_PERIOD', value: '1000h', max: '576h' },
      { event: 'option.capped', setting: 'PILOT_JWT_PUB_KEY_REFRESH_INTERVAL', value: '720h', max: '576h' },
    ]);
  });

  it.each<[NodeJS.ProcessEnv, string]>([
    [{ EXTERNAL_CA: 'ISTIOD_RA_ISTIO_API' }, 'EXTERNAL_CA=ISTIOD_RA_ISTIO_API: unknown value'],
    [{ EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API', SELF_SIGNED_CA_SECRET: 'a' }, 'K8S_SIGNER is not set'],
    [
      { EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API', K8S_SIGNER: 'example.com/mesh' },
      'no CA signs the certificate of the TLS port',
    ],
    [{ SELF_SIGNED_CA_DIR: '/ca', SELF_SIGNED_CA_SECRET: 'a' }, 'are mutually exclusive'],
  ])('rejects %j, because only the configured signer must sign certificates', (env, errorText) => {
    expect(() => resolve({}, env)).toThrow(errorText);
  });

  it('requires a port for proxy connections', () => {
    expect(resolve({ grpcAddr: '' }).grpcAddress).toBeUndefined();
    expect(() => resolve({ grpcAddr: '', httpAddr: '' })).toThrow(
      '--grpcAddr, --httpAddr: at least one address is required',
    );
  });

  it.each([
    ['no cluster is followed', {}, {}],
    ['the TLS port is closed', { kubeconfig: 'config' }, { ENABLE_CA_SERVER: 'false' }],
  ])('serves no webhooks if %s, and warns only if the flag is set', (reason, flags, env) => {
    const { webhooksAddress, warnings } = resolve({ ...flags, httpsAddr: ':1' }, env);
    expect(webhooksAddress).toBeUndefined();
    expect(warnings).toMatchObject([{ settings: '--httpsAddr', reason: expect.stringContaining(reason) }]);
    expect(resolve(flags, env).warnings).toEqual([]);
  });

  it('serves webhooks on port 15017 for the watched cluster, unless the flag is empty', () => {
    const env = { SELF_SIGNED_CA_SECRET: 'istio-ca-secret' };
    expect(resolve({ kubeconfig: 'config' }, env).webhooksAddress).toEqual({ host: '', port: 15_017 });
    expect(resolve({ kubeconfig: 'config', httpsAddr: '' }, env).webhooksAddress).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { type GivenPlane, givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { clusterType, endpointType } from '../../../networking/index.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../../runtime/trace/trace.ts';
import { DiscoveryMetrics } from './metrics.ts';

const mesh = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart.example.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: one, namespace: shop}
spec: {hosts: [cart.example.com], http: [{route: [{destination: {host: cart.example.com}}]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: two, namespace: shop}
spec: {hosts: [cart.example.com], http: [{route: [{destination: {host: cart.example.com}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: one, namespace: shop}
spec: {host: cart.example.com, subsets: [{name: v1}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: two, namespace: shop}
spec: {host: cart.example.com, subsets: [{name: v1}]}
`;

function createMetrics(): { metrics: DiscoveryMetrics; plane: GivenPlane; note: (record: object) => void } {
  const plane = givenPlane(mesh);
  const metrics = new DiscoveryMetrics({
    version: '1.2.3',
    state: plane.state,
    cache: plane.cache,
    connectedVersions: () => ['1.30.0', '1.30.0', '1.29.0'],
    nodes: () => plane.resources.nodes,
  });
  let emit: (record: TraceRecord) => void = () => {};
  const observe = (observer: (record: TraceRecord) => void): (() => void) => {
    emit = observer;
    return () => {};
  };
  metrics.observe({ observe } as unknown as Recorder);
  return { metrics, plane, note: (record) => emit(record as TraceRecord) };
}

/** Samples of matching metrics. */
async function lines(metrics: DiscoveryMetrics, name: RegExp): Promise<string[]> {
  const { body } = await metrics.text();
  return body.split('\n').filter((line) => !line.startsWith('#') && name.test(line));
}

function request(from: string, configs: string[], reasons: object = { config: 1 }, isForced = false): object {
  return { kind: 'event', t: 0, from, to: 'push', event: { type: 'push.request', configs, reasons, forced: isForced } };
}

describe('metrics of xDS', () => {
  it("count responses, rejections and streams under Istio's names", async () => {
    const { metrics } = createMetrics();
    metrics.responseSent(clusterType, { bytes: 20_000 });
    metrics.responseSent(clusterType, { bytes: 5 });
    metrics.messageSent('/pkg.Service/Stream');
    metrics.sendFailed(endpointType, 'web', Object.assign(new Error('too slow'), { code: 4 }));
    metrics.sendFailed(endpointType, 'web', new Error('broken'));
    metrics.responseRejected(clusterType, 'web', 'no "good"');
    metrics.nonceExpired(endpointType);
    metrics.streamOpened('/pkg.Service/Stream');
    metrics.streamClosed('/pkg.Service/Stream', 'OK');
    metrics.requestReceived('/pkg.Service/Stream', 300);
    metrics.requestReceived('/pkg.Service/Stream', 200);
    const method = 'grpc_type="bidi_stream",grpc_service="pkg.Service",grpc_method="Stream"';
    expect(
      await lines(metrics, /^(pilot_xds_(pushes|cds_reject|expired|recv|write)|pilot_total_xds_rejects|grpc_)/),
    ).toEqual([
      'pilot_xds_pushes{type="cds"} 2',
      'pilot_xds_pushes{type="eds_senderr"} 2',
      'pilot_total_xds_rejects{type="cds"} 1',
      'pilot_xds_expired_nonce{type="eds"} 1',
      'pilot_xds_write_timeout 1',
      `grpc_server_started_total{${method}} 1`,
      `grpc_server_handled_total{${method},grpc_code="OK"} 1`,
      `grpc_server_msg_sent_total{${method}} 1`,
      `grpc_server_msg_received_total{${method}} 2`,
      'pilot_xds_recv_max 300',
      'pilot_xds_cds_reject{node="web",err="no \\"good\\""} 1',
    ]);
    expect(await lines(metrics, /^pilot_xds_config_size_bytes/)).toEqual([
      ...[0, 1, 2, 2, 2, 2, 2].map((count, i) => {
        const le = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000, '+Inf'][i];
        return `pilot_xds_config_size_bytes_bucket{type="${clusterType}",le="${le}"} ${count}`;
      }),
      `pilot_xds_config_size_bytes_sum{type="${clusterType}"} 20005`,
      `pilot_xds_config_size_bytes_count{type="${clusterType}"} 2`,
    ]);
  });

  it('measure durations in seconds, with inclusive bucket bounds', async () => {
    const { metrics } = createMetrics();
    metrics.resourcesGenerated(clusterType, 10);
    metrics.queueTime(50);
    metrics.proxyConverged(3_000);
    metrics.responseFlushed(clusterType, 500);
    metrics.contextPublished(20);
    expect(await lines(metrics, /_(bucket|sum).*(le="(0.01|0.1|3)"| )/)).toEqual(
      expect.arrayContaining([
        'pilot_xds_push_time_bucket{type="cds",le="0.01"} 1',
        'pilot_xds_push_time_sum{type="cds"} 0.01',
        'pilot_xds_send_time_bucket{le="0.1"} 0',
        'pilot_proxy_queue_time_bucket{le="0.1"} 1',
        'pilot_proxy_convergence_time_bucket{le="3"} 1',
        'pilot_pushcontext_init_seconds_sum 0.02',
      ]),
    );
  });

  it('count rejected connections by reason', async () => {
    const { metrics } = createMetrics();
    metrics.connectionRefused('address held off');
    metrics.addressHeldOff();
    expect(await lines(metrics, /^pilot_xds_(refused_connections|held)/)).toEqual([
      'pilot_xds_refused_connections_total{reason="address_held_off"} 1',
      'pilot_xds_held_off_total 1',
    ]);
  });

  it('contain only the last rejection of each type by a connected proxy', async () => {
    const { metrics } = createMetrics();
    metrics.responseRejected(clusterType, 'web', 'one');
    metrics.responseRejected(clusterType, 'web', 'two');
    metrics.responseRejected(clusterType, 'cart', 'x'.repeat(1_000));
    const [web, cart] = await lines(metrics, /^pilot_xds_cds_reject/);
    expect(web).toBe('pilot_xds_cds_reject{node="web",err="two"} 1');
    expect(cart!.length).toBeLessThan(300);
    metrics.clientDisconnected('web');
    expect(await lines(metrics, /^pilot_xds_cds_reject/)).toEqual([cart]);
  });
});

describe('metrics of sources', () => {
  it('count added or changed services separately from removed ones', async () => {
    const { metrics, plane, note } = createMetrics();
    const reasons = { service: 2, endpoint: 1 };
    const changedKeys = ['ServiceEntry/shop/cart.example.com', 'Endpoints/shop/cart.example.com'];
    note(request('service-registry', changedKeys, reasons));
    const stateWithoutServices = { ...plane.state, registry: { services: [], endpoints: new Map() } };
    Object.assign(plane.state, { registry: stateWithoutServices.registry });
    note(request('service-registry', ['ServiceEntry/shop/cart.example.com']));
    note(request('config-controller', ['VirtualService/shop/one', 'DestinationRule/shop/gone']));
    note(request('mesh-config', [], { global: 1 }, true));
    expect(await lines(metrics, /^pilot_(inbound|push_triggers)/)).toEqual([
      'pilot_push_triggers{type="service"} 2',
      'pilot_push_triggers{type="endpoint"} 1',
      'pilot_push_triggers{type="config"} 2',
      'pilot_push_triggers{type="global"} 1',
      'pilot_inbound_updates{type="svc"} 1',
      'pilot_inbound_updates{type="eds"} 1',
      'pilot_inbound_updates{type="svcdelete"} 1',
      'pilot_inbound_updates{type="config"} 3',
    ]);
  });

  it('count added, changed and removed objects, separately for the cluster', async () => {
    const { metrics, note } = createMetrics();
    metrics.configsChanged([
      { key: 'Service/shop/cart', event: 'add' },
      { key: 'ServiceEntry/shop/cart', event: 'update' },
      { key: 'DestinationRule/shop/gone', event: 'delete' },
    ]);
    note({
      kind: 'event',
      t: 0,
      from: 'config-controller',
      to: 'discovery',
      event: {
        type: 'configs.rejected',
        problems: [
          { object: 'VirtualService shop/bad', severity: 'error' },
          { object: '', severity: 'error' },
          { object: 'Sidecar shop/odd', severity: 'warning' },
        ],
      },
    });
    expect(await lines(metrics, /^pilot_(k8s_(cfg|reg)|total_rejected)/)).toEqual([
      'pilot_total_rejected_configs{type="VirtualService",name="shop/bad"} 1',
      'pilot_k8s_cfg_events{type="ServiceEntry",event="update"} 1',
      'pilot_k8s_cfg_events{type="DestinationRule",event="delete"} 1',
      'pilot_k8s_reg_events{type="Service",event="add"} 1',
    ]);
  });

  it('measure the time from the first change to the push context', async () => {
    const { metrics, note } = createMetrics();
    note({ ...request('mesh-config', [], { global: 1 }, true), t: 1_000 });
    note({ ...request('mesh-config', [], { global: 1 }, true), t: 1_050 });
    note({ kind: 'spawn', t: 1_200, actor: 'push/context' });
    expect(await lines(metrics, /^pilot_debounce_time_(sum|count)/)).toEqual([
      'pilot_debounce_time_sum 0.2',
      'pilot_debounce_time_count 1',
    ]);
  });
});

describe('metrics that are computed during a scrape', () => {
  it('contain versions, sizes and diagnostics for the last push', async () => {
    const { metrics } = createMetrics();
    const expected =
      /^(pilot_(info|xds\{|services|virt|eds_no|vservice|destrule|no_ip|k8s_end)|istiod_managed|endpoint_no_pod)/;
    expect(await lines(metrics, expected)).toEqual([
      'pilot_info{version="1.2.3"} 1',
      'pilot_xds{version="1.30.0"} 2',
      'pilot_xds{version="1.29.0"} 1',
      'istiod_managed_clusters{cluster_type="local"} 1',
      'istiod_managed_clusters{cluster_type="remote"} 0',
      'pilot_services 1',
      'pilot_virt_services 2',
      'pilot_k8s_endpoints_pending_pod 1',
      'endpoint_no_pod 2',
      'pilot_eds_no_instances 1',
      'pilot_no_ip 0',
      'pilot_vservice_dup_domain 1',
      'pilot_destrule_subsets 1',
      'pilot_destrule_subsets_beyond_limit 0',
    ]);
  });
});

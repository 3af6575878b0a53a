/**
 * Each participant and message of the seed documents' diagrams has a row in docs/seeds.md, which names existing files.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';

interface SeedDiagram {
  /** Heading of its section in docs/seeds.md. */
  readonly heading: string;
  readonly participants: readonly string[];
  /** `sender -> receiver: text`; in the flow chart, edges. */
  readonly messages: readonly string[];
}

/** Extracted from the mermaid diagrams. Chinese notes are translated, and repeated messages are listed once. */
const diagrams: readonly SeedDiagram[] = [
  {
    heading: 'Pilot Agent',
    participants: ['agent', 'proxy/agent', 'envoy/watcher', 'envoy/proxy', 'status', 'fsnotify.Watcher'],
    messages: [
      'agent -> status: NewServer()',
      'status -> agent: statusServer *Server',
      'agent -> status: statusServer.Run()',
      'agent -> envoy/proxy: NewProxy(proxyConfig)',
      'envoy/proxy -> agent: envoyProxy proxy.Proxy',
      'agent -> proxy/agent: NewAgent(envoyProxy)',
      'proxy/agent -> agent: agent Agent',
      'agent -> envoy/watcher: NewWatcher(agent.ConfigCh), updates = agent.ConfigCh',
      'envoy/watcher -> agent: watcher Watcher',
      'agent -> envoy/watcher: watcher.Run()',
      'envoy/watcher -> fsnotify.Watcher: fw.Watch(certs), AuthCertsPath, IngressCertsPath',
      'fsnotify.Watcher -> envoy/watcher: w.watchFileEvents()',
      'envoy/watcher -> envoy/watcher: <-timeChan, 10 s delay',
      'envoy/watcher -> envoy/watcher: SendConfig()',
      'envoy/watcher -> proxy/agent: updates<-',
      'agent -> proxy/agent: agent.Run()',
      'proxy/agent -> proxy/agent: reconcile()',
      'proxy/agent -> envoy/proxy: proxy.Run(<-abort)',
      'envoy/proxy -> proxy/agent: err error',
      'proxy/agent -> proxy/agent: statusCh<-',
    ],
  },
  {
    heading: 'Pilot Discovery, short',
    participants: ['server', 'fileWatcher', 'k8s.io/client-go informer', 'handler'],
    messages: [
      'server -> fileWatcher: addFieWatcher()',
      'server -> fileWatcher: addFileWatcher()',
      'server -> k8s.io/client-go informer: cache.NewSharedIndexInformer()',
      'server -> k8s.io/client-go informer: Services().Informer()',
      'server -> k8s.io/client-go informer: Endpoints().Informer()',
      'server -> k8s.io/client-go informer: Nodes().Informer()',
      'server -> k8s.io/client-go informer: Pods().Informer()',
      'server -> handler: service.AppendServiceHandler()',
      'server -> handler: service.AppendInstanceHandler()',
      'server -> handler: config.RegisterEventHandler()',
      'fileWatcher -> server: fsnotify.Event()',
      'server -> server: discovery.ConfigUpdate(true)',
      'k8s.io/client-go informer -> handler: handler.Apply()',
      'handler -> server: discovery.ConfigUpdate()',
    ],
  },
  {
    heading: 'Pilot Discovery, detailed',
    participants: [
      'bootstrap',
      'k8s.io/client-go',
      'cmd',
      'config/ aggregate kube …',
      'kube',
      'model',
      'proxy/envoy',
      'serviceregistry',
    ],
    messages: [
      'bootstrap -> bootstrap: NewServer()',
      'bootstrap -> kube: kube.CreateClientset()',
      'kube -> bootstrap: kubeClient *kubernetes.Clientset',
      'bootstrap -> cmd: cmd.ReadMeshConfig(args.Mesh.ConfigFile)',
      'cmd -> bootstrap: mesh *meshconfig.MeshConfig',
      'bootstrap -> bootstrap: GetMeshConfig(s.kubeClient, kube.IstioNamespace, kube.IstioConfigMap)',
      'bootstrap -> model: model.DefaultMeshConfig()/model.ApplyMeshConfigDefaults(cfgYaml)',
      'model -> bootstrap: mesh meshconfig.MeshConfig',
      'bootstrap -> cmd: cmd.ReadMeshNetworksConfig()',
      'cmd -> bootstrap: meshNetworks *meshconfig.MeshNetworks',
      'bootstrap -> proxy/envoy: envoy.GetMixerSAN(args.Namespace)',
      'proxy/envoy -> bootstrap: SpiffeURI string',
      'bootstrap -> config/ aggregate kube …: memory.NewController(store)',
      'config/ aggregate kube … -> bootstrap: configController model.ConfigStoreCache',
      'bootstrap -> config/ aggregate kube …: coredatamodel.NewController()',
      'config/ aggregate kube … -> bootstrap: mcpController CoreDataModel',
      'bootstrap -> config/ aggregate kube …: configaggregate.MakeCache(configStores)',
      'config/ aggregate kube … -> bootstrap: aggregateMcpController model.ConfigStoreCache',
      'bootstrap -> config/ aggregate kube …: ingress.NewController()',
      'config/ aggregate kube … -> bootstrap: ingress model.ConfigStoreCache',
      'bootstrap -> config/ aggregate kube …: configaggregate.MakeCache(s.configController, ingress)',
      'bootstrap -> config/ aggregate kube …: ingress.NewStatusSyncer()',
      'config/ aggregate kube … -> bootstrap: ingressSyncer *StatusSyncer',
      'bootstrap -> model: model.MakeIstioStore(s.configController)',
      'model -> bootstrap: istioConfigStore IstioConfigStore',
      'bootstrap -> serviceregistry: aggregate.NewController()',
      'serviceregistry -> bootstrap: serviceControllers *Controller',
      'bootstrap -> bootstrap: s.initMemoryRegistry()',
      'bootstrap -> serviceregistry: srmemory.NewDiscovery() aggregate.Registry{}',
      'bootstrap -> bootstrap: serviceControllers.AddRegistry()',
      'bootstrap -> bootstrap: s.createK8sServiceControllers()',
      'bootstrap -> serviceregistry: kube.NewController()',
      'bootstrap -> bootstrap: s.initConsulRegistry()',
      'bootstrap -> serviceregistry: consul.NewController()',
      'bootstrap -> serviceregistry: external.NewServiceDiscovery()',
      'serviceregistry -> bootstrap: serviceEntryStore *ServiceEntryStore',
      'bootstrap -> proxy/envoy: envoy.NewDiscoveryService()',
      'proxy/envoy -> bootstrap: discovery *DiscoveryService',
      'bootstrap -> bootstrap: s.mux = discovery.RestContainer.ServeMux',
      'bootstrap -> proxy/envoy: envoyv2.NewDiscoveryServer()',
      'proxy/envoy -> bootstrap: s.EnvoyXdsServer *DiscoveryServer',
      'bootstrap -> bootstrap: initSecureGrpcServer()',
      'bootstrap -> config/ aggregate kube …: clusterregistry.NewMulticluster()',
      'config/ aggregate kube … -> bootstrap: multicluster *Multicluster',
    ],
  },
  {
    heading: 'Discovery server',
    participants: [
      'ads.StreamAggregatedResources',
      'reqChannel',
      'pushChannel',
      'discReq.TypeUrl',
      'pushCds()',
      'pushLds()',
      'pushRoute()',
      'pushEds()',
      'NewDiscoveryServer',
      'periodicRefresh',
      's.ServiceController.AppendServiceHandler()',
      's.ServiceController.AppendInstanceHandler()',
      's.configController.RegisterEventHandler()',
      'clearCache()',
      'ds.ConfigUpdate()',
      'ads.AdsPushAll()',
      'ads.startPush()',
      'config',
      'doPush()',
      'Push()',
      'eds.updateCluster()',
      'eds.updateServiceShards()',
      'eds.edsIncremental()',
      'eds.updateClusterInc()',
      'pushConnection',
      'C/E/L/Rds',
    ],
    messages: [
      'ads.StreamAggregatedResources -> reqChannel',
      'ads.StreamAggregatedResources -> pushChannel',
      'reqChannel -> discReq.TypeUrl',
      'discReq.TypeUrl -> pushCds(): ClusterType',
      'discReq.TypeUrl -> pushLds(): ListenerType',
      'discReq.TypeUrl -> pushRoute(): RouteType',
      'discReq.TypeUrl -> pushEds(): EndpointType',
      'NewDiscoveryServer -> periodicRefresh',
      'NewDiscoveryServer -> s.ServiceController.AppendServiceHandler()',
      'NewDiscoveryServer -> s.ServiceController.AppendInstanceHandler()',
      'NewDiscoveryServer -> s.configController.RegisterEventHandler()',
      's.ServiceController.AppendServiceHandler() -> clearCache()',
      's.ServiceController.AppendInstanceHandler() -> clearCache()',
      's.configController.RegisterEventHandler() -> clearCache()',
      'clearCache() -> ds.ConfigUpdate(): full=true',
      'periodicRefresh -> ads.AdsPushAll()',
      'ads.startPush() -> pushChannel',
      'config -> ds.ConfigUpdate(): MeshConfig/MeshNetworks/MCPConfig',
      'ds.ConfigUpdate() -> doPush()',
      'doPush() -> Push()',
      'Push() -> ads.AdsPushAll()',
      'ads.AdsPushAll() -> eds.updateCluster()',
      'Push() -> eds.updateServiceShards()',
      'ads.AdsPushAll() -> eds.edsIncremental()',
      'eds.edsIncremental() -> eds.updateClusterInc()',
      'ads.AdsPushAll() -> ads.startPush()',
      'eds.edsIncremental() -> ads.startPush()',
      'eds.updateClusterInc() -> eds.updateCluster()',
      'pushChannel -> pushConnection',
      'pushConnection -> C/E/L/Rds',
    ],
  },
];

interface Row {
  readonly seed: string;
  readonly here: string;
  readonly remark: string;
}

const root = packageRoot();
const page = readFileSync(join(root, 'docs/seeds.md'), 'utf8');

/** Rows of the tables under a heading of level 2, without the headers. */
function rowsUnder(heading: string): Row[] {
  const sectionText = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return sectionText
    .split('\n')
    .filter((line) => line.startsWith('| ') && line !== '| seed | here | remark |')
    .map((line) => {
      const [seed = '', here = '', remark = ''] = line.split('|').slice(1, -1);
      return { seed: seed.trim(), here: here.trim(), remark: remark.trim() };
    });
}

const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!);

/** Paths in code style and targets of links in a cell. */
function filesIn({ here }: Row): string[] {
  const paths = [...here.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
  const links = [...here.matchAll(/\]\(([^)#]+)/g)].map(([, target]) => `docs/${target}`);
  return [...paths, ...links];
}

describe('docs/seeds.md', () => {
  test.each(diagrams)(
    'docs/seeds.md has a row for each participant and message of the diagram "$heading"',
    (diagram) => {
      const seeds = new Set(rowsUnder(diagram.heading).map(({ seed }) => seed));
      const diagramNames = [...diagram.participants, ...diagram.messages];
      expect(diagramNames.filter((name) => !seeds.has(`\`${name}\``))).toEqual([]);
    },
  );

  test.each(headings)('docs/seeds.md names existing files, or a reason, in each row of "%s"', (heading) => {
    const rows = rowsUnder(heading);
    expect(rows.length).toBeGreaterThan(0);
    const faulty = rows.filter((row) => {
      if (row.here === 'not implemented') return row.remark === '';
      const files = filesIn(row);
      return files.length === 0 || !files.every((file) => existsSync(join(root, file)));
    });
    expect(faulty).toEqual([]);
  });

  test('docs/seeds.md has no row for a message that no diagram contains', () => {
    const arrows = diagrams.flatMap(({ heading, messages }) =>
      rowsUnder(heading)
        .map(({ seed }) => seed.slice(1, -1))
        .filter((seed) => seed.includes(' -> ') && !messages.includes(seed)),
    );
    expect(arrows).toEqual([]);
  });
});

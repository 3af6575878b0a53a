/** The part of the run inside its network namespace: API server, control plane, controllers and suite. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { startApiServer } from '../cluster/api-server-process.ts';
import { kubeconfigText } from '../cluster/mesh-objects.ts';
import { eventually } from '../harness/eventually.ts';
import { Program } from '../harness/program.ts';
import { ClusterApi } from './cluster-api.ts';
import { runGateways } from './gateway-proxies.ts';
import { Kubelet } from './kubelet.ts';
import { NodeNetwork, nodeAddress } from './node-network.ts';
import { gatewayApiDefinitions } from './programs.ts';
import { NamespaceController, readObjects, runDeployments, runEndpointSlices } from './workloads.ts';

const folder = process.env.FOLDER!;
const report = (line: string): void => console.error(line);
/** Interval between two rounds of the controllers. */
const restMs = 300;
const suiteLimit = '60m';
/** Built programs, because the sources may change during the run. */
const built = (program: string): string => join(packageRoot(), 'dist', `${program}.mjs`);

const network = new NodeNetwork();
await network.start();
const server = await startApiServer(report);
const api = new ClusterApi(server);
const kubeconfig = join(folder, 'kubeconfig');
writeFileSync(kubeconfig, kubeconfigText(server), { mode: 0o600 });

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
for (const definition of gatewayApiDefinitions())
  await api.apply(`${definitions}/${definition.metadata.name}`, definition);
await api.create('/api/v1/namespaces', { metadata: { name: 'istio-system' } });
await api.create('/api/v1/namespaces/istio-system/serviceaccounts', { metadata: { name: 'istiod' } });

const controlPlane = Program.run('pilot-discovery', process.execPath, {
  args: [
    ...[built('pilot-discovery'), 'discovery', '--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
    ...['--grpcAddr', `${nodeAddress}:15010`, '--secureGRPCAddr', `${nodeAddress}:15012`],
    ...['--httpAddr', `${nodeAddress}:8080`, '--monitoringAddr', '', '--httpsAddr', ''],
  ],
  env: {
    ...process.env,
    ...{ POD_NAME: 'istiod-1', POD_NAMESPACE: 'istio-system', SELF_SIGNED_CA_SECRET: 'istio-ca-secret' },
  },
  cwd: folder,
  logFile: join(folder, 'pilot-discovery.log'),
});
await eventually(
  'the control plane is ready',
  async () => (await fetch(`http://${nodeAddress}:8080/ready`).catch(() => undefined))?.status === 200,
  { hopeless: () => controlPlane.hopeless() },
);

await eventually('the control plane has created its GatewayClass', async () => {
  const gatewayClass = await api.get('/apis/gateway.networking.k8s.io/v1/gatewayclasses/istio');
  return gatewayClass !== undefined;
});

const pods = join(folder, 'pods');
mkdirSync(pods);
const agent = [process.execPath, built('pilot-agent')];
const kubelet = new Kubelet({ api, network, folder: pods, echo: process.env.ECHO!, agent, report });
await kubelet.start();
const namespaces = new NamespaceController();

let isRunning = true;
const controllers = (async () => {
  while (isRunning) {
    try {
      const objects = await readObjects(api);
      await namespaces.run(api, objects);
      await runGateways(api, objects);
      await runDeployments(api, objects);
      await kubelet.run(objects);
      await runEndpointSlices(api, objects);
    } catch (error) {
      report(`controllers: ${error}`);
    }
    await delay(restMs);
  }
})();

report('The conformance suite runs');
const log = openSync(join(folder, 'suite.log'), 'w');
const suite = spawn(process.env.SUITE!, ['-test.v', '-test.timeout', suiteLimit, '-test.run', 'TestConformance'], {
  ...{ cwd: packageRoot(), stdio: ['ignore', log, log] },
  env: { ...process.env, KUBECONFIG: kubeconfig, REPORT: join(folder, 'report.json') },
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => suite.kill(signal));
const [code] = await once(suite, 'close');
isRunning = false;
await controllers;
await kubelet.end();
await controlPlane.stop();
await server.stop();
process.exit(code === 0 ? 0 : 1);

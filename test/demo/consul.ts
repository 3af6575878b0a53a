/** The Consul demo: `npm run demo:consul`, `npm run demo:consul -- --check`. */
import { checkConsul, checkConsulEnd } from './check-consul.ts';
import { ConsulMesh } from './consul-mesh.ts';
import { mainActors } from './event-lines.ts';
import { runDemo } from './run-demo.ts';

const usage = `Usage: npm run demo:consul [-- --check]

Run virtual machines without Kubernetes on loopback: a real Consul, a control plane that reads it, and two services, each
instance with an agent and a real Envoy. A VirtualService splits requests between two versions.

  --check  change weights, restart Consul under load, and exit with 0 if all results are as expected, else with 1
`;

await runDemo({
  usage,
  starting: 'starting: Consul, control plane, shop and two versions of stock, each with its agent …',
  started: 'a response of each version through three Envoys',
  create: () => ConsulMesh.create(),
  printed: ['pilot-discovery', 'shop', 'stock-v1'],
  charts: mainActors,
  check: checkConsul,
  checkEnd: checkConsulEnd,
  thingsToTry: (mesh) => [
    `  curl ${mesh.shopUrl}                                    the version of stock that responds`,
    `  curl ${mesh.consul.url}/v1/catalog/services`,
    `  curl http://127.0.0.1:${mesh.httpPort}/debug/consulz`,
    `Change weights in ${mesh.root}/mesh/consul.yaml.`,
  ],
});

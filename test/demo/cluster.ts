/** The cluster demo: `npm run demo:cluster`, `npm run demo:cluster -- --check`. */
import { checkCluster, checkClusterEnd } from './check-cluster.ts';
import { ClusterMesh } from './cluster-mesh.ts';
import { runDemo } from './run-demo.ts';
import { print } from './session.ts';

const usage = `Usage: npm run demo:cluster [-- --check]

Run a bare Kubernetes cluster of one real node on this machine and install the mesh with the commands that a user types, which are
printed: images, Helm chart, label of the namespace, two applications, a Gateway, the debugger's page. Needs root; the machine's own
network does not change.

  --check  change routes and security, remove the mesh, and exit with 0 if all results are as expected, else with 1

Environment: CHARTPILOT_TEST_IMAGE, output directory of npm run image, instead of building the images.
`;

await runDemo({
  usage,
  starting: 'starting: API server, node and name server; each command of a user is printed as it runs',
  started: 'a response through the Gateway',
  create: async () => new ClusterMesh(print),
  printed: [],
  check: checkCluster,
  checkEnd: checkClusterEnd,
  thingsToTry: (mesh) => [
    `  export KUBECONFIG=${mesh.root}/kubeconfig`,
    `  ${mesh.clientCommand}`,
    `  ${mesh.gatewayCommand}`,
    '  kubectl apply -f examples/cluster/weights.yaml -f examples/cluster/strict.yaml',
    `Page of the debugger: ${mesh.pageUrl}`,
  ],
});
